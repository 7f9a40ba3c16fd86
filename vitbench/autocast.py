"""Autocast of a device that may not be there: torch.autocast without looking for the device, and CUDA's on the CPU.

Backward of fake CUDA tensors needs a CUDA device, that of fake CPU tensors does not; so training on CUDA is traced on
the CPU. The two have different lists of operators that autocast runs in float32: inside `as_on_cuda` the CPU has
CUDA's (ATen/autocast_mode.h). NOT held to it: operators that promote to the widest of their inputs, and those that the
CPU's list has and CUDA's has not, which are rare in models of vision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.library import Library

from vitbench.ledger.tape import PRECISIONS

AMP = {  # products in half precision, weights in float32
    name: getattr(torch, one.products) for name, one in PRECISIONS.items() if one.stored != one.products
}

CAST = (  # their inputs become float32
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "layer_norm", "rms_norm", "group_norm",
    "cosine_similarity", "cdist", "renorm", "logsumexp", "upsample_nearest2d", "upsample_bilinear2d",
    "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "upsample_trilinear3d",
    "upsample_linear1d",
)  # fmt: skip
GIVEN = (  # told to compute in float32, unless told otherwise
    "prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm", "sum",
    "sum.dim_IntList",
)  # fmt: skip
LEFT = ("cat", "stack")  # as they are: the CPU's list would widen their inputs first
HALF_TO_FLOAT = {"softmax.int": torch.ops.aten._softmax, "log_softmax.int": torch.ops.aten._log_softmax}
KEY = "AutocastCPU"


@contextmanager
def autocast(device: str, dtype: str) -> Iterator[None]:
    """As torch.autocast, which looks for the device; without one, the switches behind it. dtype: another than AMP's
    leaves all as it is.
    """
    if dtype not in AMP:
        yield
        return
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, AMP[dtype])
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """Inside, autocast on the CPU runs in float32 what CUDA's does."""
    library = Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the CPU's own list has too
            for names, run in ((CAST, _cast), (GIVEN, _given), (LEFT, _left)):
                for name in names:
                    library.impl(name, _apart(name, run), KEY, allow_override=True)
        yield
    finally:
        library._destroy()


def _apart(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The operator, run once autocast is left."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return run(name, operator, args, kwargs)

    return kernel


def _left(_: str, operator: Any, args: Any, kwargs: Any) -> Any:
    return operator(*args, **kwargs)


def _cast(_: str, operator: Any, args: Any, kwargs: Any) -> Any:
    def wide(one: Tensor) -> Tensor:
        return one.float() if one.is_floating_point() and one.dtype != torch.float64 else one

    args, kwargs = torch.utils._pytree.tree_map_only(Tensor, wide, (args, kwargs))
    return operator(*args, **kwargs)


def _given(name: str, operator: Any, args: Any, kwargs: Any) -> Any:
    x, told = args[0], kwargs.get("dtype")
    if told is None and len(args) > 2 and name in HALF_TO_FLOAT:
        told = args[2]
    if told is not None or not x.is_floating_point():
        return operator(*args, **kwargs)
    if name in HALF_TO_FLOAT and x.dtype == torch.float16:  # CUDA's kernel reads halves and writes float32
        return HALF_TO_FLOAT[name](x, args[1], True)
    return operator(*args, **{**kwargs, "dtype": torch.float32})
