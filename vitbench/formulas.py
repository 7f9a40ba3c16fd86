"""MACs of torch's operators: torch's own formulas, and those that it lacks or has wrong.

A formula takes what its operator takes, tensors as their sizes unless it is marked _get_raw, and gives FLOPs, two a
MAC, as torch's do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from torch.utils.flop_counter import (
    conv_flop_count,
    flop_registry,
    sdpa_backward_flop_count,
    sdpa_flop_count,
    shape_wrapper,
)

aten = torch.ops.aten


def _forward(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    """q (B, H, N, d) x k (B, H, M, d), then weights x v."""
    return int(sdpa_flop_count(q, k, v))


def _backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    """Scores again, then the gradients of weights, v, q and k: five products."""
    return int(sdpa_backward_flop_count(grad, q, k, v))


def _convolution_backward(grad: Any, x: Any, w: Any, *rest: Any, **__: Any) -> int:
    """Gradients of x and w where asked for, each as large as the convolution (grad: of its output)."""
    transposed, output_mask = rest[4], rest[7]
    return int(conv_flop_count(x, w, grad, transposed) * sum(output_mask[:2]))


def _flex_forward(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(q.shape, k.shape, v.shape))


def _flex_backward(q: Any, k: Any, v: Any, _out: Any, _lse: Any, grad: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(grad.shape, q.shape, k.shape, v.shape))


for _formula in (_flex_forward, _flex_backward):
    _formula._get_raw = True  # type: ignore[attr-defined]  # FlopCounterMode's mark for formulas that take tensors


def _heads_first(size: Any) -> Any:
    """(B, N, H, d) -> (B, H, N, d)."""
    return torch.Size((size[0], size[2], size[1], *size[3:]))


def _flash_forward(q: Any, k: Any, v: Any, cum_q: Any = None, cum_k: Any = None, *_: Any, **__: Any) -> int:
    """q (B, N, H, d), heads after tokens; torch's formula reads them the other way round."""
    if cum_q is not None or cum_k is not None:
        raise NotImplementedError("sequences of unequal lengths, whose lengths are data")
    return int(sdpa_flop_count(*map(_heads_first, (q, k, v))))


def _flash_backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(*map(_heads_first, (grad, q, k, v))))


def _efficient_forward(q: Any, k: Any, v: Any, _bias: Any = None, *cum: Any, **__: Any) -> int:
    return _flash_forward(q, k, v, *cum[:2])


def _efficient_backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    return _flash_backward(grad, q, k, v)


def _vectors(a: Any, *_: Any, **__: Any) -> int:
    """(N) x (N), or (N, M) x (M): as many products as the first has elements."""
    return 2 * int(prod(a))


def _added_vectors(_added: Any, a: Any, *_: Any, **__: Any) -> int:
    return _vectors(a)


def _added_batches(_added: Any, a: Any, b: Any, *_: Any, **__: Any) -> int:
    """(B, N, K) x (B, K, M), summed over B."""
    return 2 * int(prod(a) * b[-1])


FORMULAS: dict[Any, Callable[..., int]] = {  # what torch counts as 0 without a word (pytorch#195460), or wrongly
    aten.convolution_backward: _convolution_backward,  # torch's knows no groups: depthwise, C times too much
    aten._scaled_dot_product_flash_attention_for_cpu: _forward,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _backward,
    aten._flash_attention_forward: _flash_forward,
    aten._flash_attention_backward: _flash_backward,
    aten._efficient_attention_forward: _efficient_forward,
    aten._efficient_attention_backward: _efficient_backward,
    aten.mv: _vectors,
    aten.dot: _vectors,
    aten.vdot: _vectors,
    aten.addmv: _added_vectors,
    aten.addbmm: _added_batches,
    flex_attention: _flex_forward,
    flex_attention_backward: _flex_backward,
}


def _of_tensors(formula: Callable[..., int]) -> Callable[..., int]:
    wrapped: Callable[..., int] = formula if hasattr(formula, "_get_raw") else shape_wrapper(formula)
    return wrapped


ALIKE = {  # in place, or of integers
    aten.addmm_: aten.addmm,
    aten.baddbmm_: aten.baddbmm,
    aten._int_mm: aten.mm,
    aten.addmv_: aten.addmv,
    aten.addbmm_: aten.addbmm,
}
KNOWN: dict[Any, Callable[..., int]] = {**flop_registry, **{op: _of_tensors(one) for op, one in FORMULAS.items()}}
KNOWN |= {operator: KNOWN[other] for operator, other in ALIKE.items()}


def macs(packet: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """Of one call that gave out; None where there is no formula for it."""
    if packet not in KNOWN:
        return None
    try:
        return int(KNOWN[packet](*args, **kwargs, out_val=out)) // 2
    except NotImplementedError:
        return None
