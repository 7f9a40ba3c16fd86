"""Models of timm traced as the published tables ran them; each once, kept in a folder.

Those ran with timm's fast norms through NVIDIA's apex, whose LayerNorm keeps the dtype of its input where autocast
would have it in float32 (found from the times themselves: docs/log.md), and with torch's written-out attention in half
precision, which newer ones have in float32.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from vitbench.refusal import Refusal
from vitbench.step import Trace

BATCH = 32  # that a model is traced with
WORKERS = 2
CODE: tuple[str, ...] = (
    "aten.py",
    "autocast.py",
    "formulas.py",
    "kinds.py",
    "placed.py",
    "source.py",
    "step.py",
    "trace.py",
)
CODE += ("exact/fused.py", "exact/lifetimes.py", "exact/roles.py", "validation/traces.py")


class Wanted(NamedTuple):
    """eager: attention written out. halves: and where it is, in half precision."""

    model: str
    image: int
    eager: bool
    halves: bool = True


def family(model: str) -> str | None:
    """timm's file of the model; None where timm does not know it."""
    from timm.models import _registry

    module: str | None = _registry._model_to_module.get(model.partition(".")[0])
    return module


def traces(wanted: Iterable[Wanted], folder: Path, told: Callable[[int, int], None]) -> dict[Wanted, Trace]:
    """Of those that timm has and torch can trace. told: is given how many of all.

    folder: where they are kept, apart for each version of what traces them.
    """
    folder = folder / digest()
    folder.mkdir(parents=True, exist_ok=True)
    every = sorted(set(wanted))
    missing = [one for one in every if _read(_file(one, folder)) is None]
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), _begin) as pool:
        for n, _ in enumerate(pool.map(_keep, missing, [folder] * len(missing))):
            told(n + 1, len(missing))
    found = {one: _read(_file(one, folder)) for one in every}
    return {one: trace for one, trace in found.items() if isinstance(trace, Trace)}


def _read(file: Path) -> Trace | str | None:
    """What was kept: a trace, or why there is none; None where nothing was, or what is damaged."""
    try:
        found = pickle.loads(file.read_bytes())
    except Exception:  # whatever a damaged file makes pickle do
        return None
    return found if isinstance(found, (Trace, str)) else None


def digest() -> str:
    """Of what decides a trace: our code, torch, timm."""
    found = hashlib.sha256(repr([version(name) for name in ("torch", "timm")]).encode())
    package = files("vitbench")
    for name in CODE:
        found.update((package / name).read_bytes())
    return found.hexdigest()[:12]


def _file(one: Wanted, folder: Path) -> Path:
    return folder / f"{one.model}@{one.image}{'-eager' * one.eager}{'' if one.halves else '-float32'}.pickle"


def _begin() -> None:
    """In a worker: as the tables were measured."""
    import torch
    from timm.layers import fast_norm, norm
    from torch.nn import functional

    def kept(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        weight, bias = (None if one is None else one.to(x.dtype) for one in (weight, bias))
        enabled = torch.is_autocast_enabled("cuda")
        torch.set_autocast_enabled("cuda", False)
        try:
            return functional.layer_norm(x, shape, weight, bias, eps)
        finally:
            torch.set_autocast_enabled("cuda", enabled)

    def enabled(device: str = "cuda") -> bool:
        return device != "meta" and torch.is_autocast_enabled(device)  # some models run once as they are made

    for module, name, own in ((norm, "fast_layer_norm", kept), (fast_norm, "is_autocast_enabled", enabled)):
        assert hasattr(module, name), f"{module.__name__} has no {name} to replace"
        setattr(module, name, own)
    fast_norm.set_fast_norm(True)  # type: ignore[no-untyped-call]
    torch.set_num_threads(1)


def _keep(one: Wanted, folder: Path) -> None:
    import torch

    from vitbench.source import open_source
    from vitbench.trace import trace

    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(one.halves)
    found: Trace | str
    try:
        opened = open_source(f"timm:{one.model}", (one.image, one.image), BATCH, eager=one.eager)
        found = trace(opened, BATCH)
    except Refusal as refusal:
        found = str(refusal)
    file = _file(one, folder)
    part = file.with_suffix(f".{os.getpid()}")
    with suppress(FileNotFoundError):
        part.write_bytes(pickle.dumps(found))
        part.replace(file)
