"""What some operators give on meta tensors, without torch's own rules, which are Python and take milliseconds.

A shortcut answers None where its operator's arguments are not the plain ones: then torch's rule is asked, which also
says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Rule = Callable[..., Any]


def shortcut(operator: Any, args: Any, kwargs: Any) -> Any:
    """What the operator gives; None where there is no shortcut."""
    rule = RULES.get(operator)
    return rule(*args, **kwargs) if rule else None


def _like(number: int, memory_format: torch.memory_format = torch.preserve_format) -> Rule:
    """As large as that argument, which alone is a tensor or is as large as all others."""

    def rule(*args: Any, **_: Any) -> Any:
        return torch.empty_like(args[number], memory_format=memory_format)

    return rule


def _pairwise(one: Any, other: Any, **kwargs: Any) -> Any:
    plain = isinstance(other, Tensor) and one.shape == other.shape and one.dtype == other.dtype
    plain = plain and one.is_floating_point()
    dense = plain and one.is_contiguous() and other.is_contiguous()
    return torch.empty_like(one) if dense and set(kwargs) <= {"alpha"} else None


def _softmax(x: Tensor, dim: int, to_float: bool) -> Any:
    plain = not to_float and -x.ndim <= dim < x.ndim
    return torch.empty_like(x, memory_format=torch.contiguous_format) if plain else None


def _addmm(added: Tensor, one: Tensor, other: Tensor, **_: Any) -> Any:
    fits = one.ndim == other.ndim == 2 and one.shape[1] == other.shape[0] and added.shape in (other.shape[1:], ())
    same = one.dtype == other.dtype == added.dtype
    return one.new_empty((one.shape[0], other.shape[1])) if fits and same else None


def _layer_norm(x: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None, _eps: float) -> Any:
    own = [one for one in (weight, bias) if one is not None]
    fits = list(x.shape[x.ndim - len(shape) :]) == list(shape) == [*(own[0].shape if own else shape)]
    if not fits or any(one.dtype != x.dtype for one in own) or x.dtype not in (torch.float32, torch.float64):
        return None
    sums = x.new_empty((*x.shape[: x.ndim - len(shape)], *[1] * len(shape)))
    return x.new_empty(x.shape), sums, torch.empty_like(sums)


def _layer_norm_backward(
    _grad: Tensor, x: Tensor, _shape: Any, _m: Any, _r: Any, weight: Tensor | None, bias: Tensor | None, mask: Any
) -> Any:
    return tuple(_wanted(one, want) for one, want in zip((x, weight, bias), mask, strict=True))


def _wanted(one: Tensor | None, want: bool) -> Tensor | None:
    return torch.empty_like(one, memory_format=torch.contiguous_format) if want and one is not None else None


def _batch_norm(x: Tensor, weight: Tensor | None, *_: Any) -> Any:
    if weight is None or weight.dtype != x.dtype or weight.shape != x.shape[1:2] or x.numel() == len(weight):
        return None
    sums = torch.empty_like(weight)
    return torch.empty_like(x), sums, torch.empty_like(sums)


def _batch_norm_backward(_grad: Tensor, x: Tensor, weight: Tensor | None, *rest: Any) -> Any:
    own = None if weight is None else torch.empty_like(weight)
    if own is None or weight is None:
        return None
    given = (torch.empty_like(x), own, torch.empty_like(weight))
    return tuple(one if want else None for one, want in zip(given, rest[-1], strict=True))


RULES: dict[Any, Rule] = {
    **dict.fromkeys((aten.gelu.default, aten.silu.default, aten.hardswish.default), _like(0)),
    **dict.fromkeys(
        (aten.gelu_backward.default, aten.silu_backward.default, aten.hardswish_backward.default), _like(1)
    ),
    **dict.fromkeys((aten.sigmoid_backward.default, aten.tanh_backward.default), _like(1)),
    **dict.fromkeys((aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor), _pairwise),
    aten.roll.default: _like(0, torch.contiguous_format),
    aten._softmax.default: _softmax,
    aten._softmax_backward_data.default: _like(1, torch.contiguous_format),
    aten.addmm.default: _addmm,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
}
