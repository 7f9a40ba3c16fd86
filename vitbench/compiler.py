"""What torch.compile needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

OFF = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")  # with them what is called compiled would run eagerly


def lacking(device: str) -> str | None:
    """Why nothing can be compiled for the device here, with the remedy; None if it can."""
    if off := [name for name in OFF if os.environ.get(name) == "1"]:
        return f"{off[0]}=1 turns torch.compile off: unset it"
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


@dataclass
class Compiled:
    """seconds: spent on compiling. matched: times that products and softmax were replaced by SDPA; None if not known,
    as where the graph came from a cache on disk.
    """

    seconds: float = 0.0
    matched: int | None = None


@contextmanager
def watched() -> Iterator[Compiled]:
    """Inside, torch compiles from scratch (or from its caches on disk); what it did is known afterwards."""
    import torch
    from torch._dynamo.utils import calculate_time_spent, counters

    torch.compiler.reset()  # or torch stops compiling after a few shapes and runs eagerly without a word
    for group, name in _SAID:
        counters[group].pop(name, None)
    before, found = calculate_time_spent()["total_wall_time"], Compiled()
    yield found
    found.seconds = calculate_time_spent()["total_wall_time"] - before
    matched, *cached = (counters[group].get(name, 0) for group, name in _SAID)
    found.matched = None if any(cached) else matched


# Counters of torch: matches of its attention patterns, and graphs that were read from a cache, where it looks for none.
_SAID = (("inductor", "fuse_attention"), ("inductor", "fxgraph_cache_hit"), ("aot_autograd", "autograd_cache_hit"))
