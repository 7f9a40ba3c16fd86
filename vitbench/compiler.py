"""What torch.compile needs on this machine."""

from __future__ import annotations

import importlib.util
import shutil
from contextlib import AbstractContextManager


def lacking(device: str) -> str | None:
    """Why nothing can be compiled for the device here, with the remedy; None if it can."""
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "torch.compile needs triton on CUDA: pip install triton"
    if device == "cpu" and not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        return "torch.compile needs a C++ compiler on the CPU: install g++"
    return None


def turned_off() -> AbstractContextManager[object]:
    """Inside, compiled functions run eagerly, so that counters see their operators."""
    import torch

    off: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return off
