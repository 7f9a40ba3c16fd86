"""What fvcore adds to the products of a call, and the convolutions that it passes over: most published tables of timm
models were filled with it, and `vitbench audit` explains its counts by this.

From fvcore 0.1.5, fvcore/nn/flop_count.py and jit_handles.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from torch.overrides import TorchFunctionMode

Given = Mapping[str, Any]  # arguments by name
ARGUMENTS = {  # of torch's functions, as many as are needed here
    "layer_norm": ("input", "normalized_shape", "weight"),
    "group_norm": ("input", "num_groups", "weight"),
    "instance_norm": ("input", "running_mean", "running_var", "weight"),
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training"),
    "adaptive_avg_pool2d": ("input",),
    "interpolate": ("input", "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor", "antialias"),
    "grid_sample": ("input",),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), ("input", "weight", "bias", "stride", "padding")),
}


def _norm(given: Given, _: Any) -> int:
    """5 an element, 4 without weights."""
    return int(given["input"].numel()) * (4 if given.get("weight") is None else 5)


def _batch_norm(given: Given, out: Any) -> int:
    """2 an element at inference, 1 without weights; as any norm where it takes its own mean (standardised weights)."""
    if given.get("training"):
        return _norm(given, out)
    return int(given["input"].numel()) * (1 if given.get("weight") is None else 2)


def _pooling(given: Given, _: Any) -> int:
    return int(given["input"].numel())


def _interpolation(given: Given, out: Any) -> int:
    """1 an element of an image by its nearest, 4 bilinear; others have no handle."""
    if out.ndim != 4 or given.get("antialias"):
        return 0
    return int(out.numel()) * {"nearest": 1, "bilinear": 4}.get(given.get("mode", "nearest"), 0)


def _sampling(_: Given, out: Any) -> int:
    return 4 * int(out.numel())


ADDED: dict[str, Callable[[Given, Any], int]] = {
    "layer_norm": _norm,
    "group_norm": _norm,
    "instance_norm": _norm,
    "batch_norm": _batch_norm,
    "adaptive_avg_pool2d": _pooling,
    "interpolate": _interpolation,
    "grid_sample": _sampling,
}


class Fvcore(TorchFunctionMode):
    """Inside, `norms` is what fvcore adds, `worded` the MACs of convolutions whose padding is a word.

    Those run as aten::_convolution_mode, for which fvcore has no handle. found: both by function of torch's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, Counter[str]] = {}

    @property
    def norms(self) -> int:
        return sum(one["added"] for one in self.found.values())

    @property
    def worded(self) -> int:
        return sum(one["worded"] for one in self.found.values())

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in ARGUMENTS:
            given = {**dict(zip(ARGUMENTS[name], args, strict=False)), **kwargs}
            counts = self.found.setdefault(name, Counter(added=0, worded=0))
            if name in ADDED:
                counts["added"] += ADDED[name](given, out)
            elif isinstance(given.get("padding"), str):  # each output is a sum over all but the first side of a weight
                counts["worded"] += int(out.numel()) * prod(given["weight"].shape[1:])
        return out
