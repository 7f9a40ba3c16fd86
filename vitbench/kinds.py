"""What kind of kernel an operator of torch's is, and what it moves. Kinds: those of `work.KINDS`."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from vitbench.aten import COMPUTED, COPIES, RESAMPLING

FREE = {  # give a tensor without a kernel
    "_unsafe_view", "alias", "_assert_async", "detach", "device", "empty", "empty_like", "empty_permuted",
    "empty_strided", "is_same_size", "lift_fresh", "_local_scalar_dense", "new_empty", "new_empty_strided", "sym_size",
}  # fmt: skip
CAST = "_to_copy"
NORMS = {"native_layer_norm", "native_group_norm", "native_batch_norm", "cudnn_batch_norm", "_fused_rms_norm"}
DENSE = {"native_layer_norm", "_softmax", "_log_softmax", "_safe_softmax"}
GATHERING = {"embedding", "gather", "index", "index_select"}  # read some elements of their first argument
EACH = {"im2col"}  # on CUDA these run a kernel for each image
# Reductions by name: what is computed and not pointwise, and what turns scores, norms and pools back.
REDUCTIONS = (COMPUTED - {"hardswish", "glu"}) | {
    "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward", "native_group_norm_backward",
    "native_batch_norm_backward", "cudnn_batch_norm_backward", "_fused_rms_norm_backward", "max", "min", "prod", "topk",
}  # fmt: skip
FILLING = {"fill", "zero", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros", "new_full",
           "new_ones", "arange", "scalar_tensor"}  # fmt: skip


def _base(func: Any) -> str:
    name: str = func._overloadpacket.__name__
    return name if name == CAST else name.rstrip("_")  # a trailing one: in place


@cache
def is_free(func: Any) -> bool:
    """Whether it runs no kernel: a view, or memory that is taken and not written."""
    return bool(func.is_view) or func._overloadpacket.__name__ in FREE


def kind(func: Any, args: Any, given: list[Tensor], made: list[Tensor], macs: int | None) -> str:
    """macs: None where it is no product; 0 where one of nothing, which no device multiplies."""
    name = _base(func)
    if not macs:
        if name == CAST:
            return "cast" if given and given[0].dtype != made[0].dtype else "copy"
        return _kind(func)
    if "attention" in name:
        return "attention"
    if "convolution" not in name:
        return "product"
    x, groups = _convolved(name, args)[0], args[-1 if name == "convolution" else -2]
    if groups == 1:
        return "convolution"
    return "depthwise" if groups == x.shape[1] else "grouped"


@cache
def _kind(func: Any) -> str:
    name = _base(func)
    if name in REDUCTIONS or name.startswith(RESAMPLING):
        return "reduction"
    pointwise = torch.Tag.pointwise in func.tags and name not in COPIES
    return "pointwise" if pointwise or name.endswith("_backward") or name in ("glu", "hardswish") else "copy"


def inner(func: Any, args: Any, made: list[Tensor], macs: int | None) -> int:
    """Products summed into one element of what it gives; 0 where it is no product."""
    if not macs:
        return 0
    name = _base(func)
    if "convolution_" in name:  # backward
        return int(_convolved(name, args)[1].shape[1:].numel())
    if "attention" in name:
        return max(1, int(made[0].shape[-1]))
    return max(1, macs // max(1, made[0].numel()))


def _convolved(name: str, args: Any) -> tuple[Tensor, Tensor]:
    """Input and weights."""
    first = 0 if name == "convolution" else 1
    return args[first], args[first + 1]


def each(func: Any, given: list[Tensor]) -> bool:
    """Whether it runs a kernel for each image on a card."""
    return _base(func) in EACH and given[0].ndim == 4


def wants_dense(func: Any) -> bool:
    """Whether its kernel copies what is not dense before it begins."""
    return _base(func) in DENSE


def moved(func: Any, given: list[Tensor], made: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Of what it takes and gives, what it reads and writes."""
    name = _base(func)
    if name == "copy":
        return given[1:], made[:1]
    if name in FILLING:
        return [], made
    if name in GATHERING and given[0].numel() > made[0].numel():
        return [made[0], *given[1:]], made  # as much of it as it gives
    return given, made[:1] if name in NORMS else made  # statistics stay small, or out of memory in inference
