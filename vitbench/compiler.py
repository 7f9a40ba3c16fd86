"""What torch.compile needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from contextlib import AbstractContextManager
from pathlib import Path


def lacking(device: str) -> str | None:
    """Why nothing can be compiled for the device here, with the remedy; None if it can."""
    if device == "cpu":
        found = any(map(shutil.which, ("c++", "g++", "clang++")))
        return None if found else "torch.compile needs a C++ compiler on the CPU: install g++"
    if importlib.util.find_spec("triton") is None:
        return "torch.compile needs triton on CUDA: pip install triton"
    if not os.environ.get("CC") and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "triton builds its launchers with a C compiler: install gcc"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "triton builds its launchers against Python.h: install Python's headers (python3-dev)"
    return None


def turned_off() -> AbstractContextManager[object]:
    """Inside, compiled functions run eagerly, so that counters see their operators."""
    import torch

    off: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return off
