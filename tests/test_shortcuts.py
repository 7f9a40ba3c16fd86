"""A shortcut gives what torch's own rule for meta tensors gives: shapes, strides where they matter, dtypes, None."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from vitbench.exact.shortcuts import RULES, shortcut

aten = torch.ops.aten


def t(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(size, dtype=dtype, device="meta")


X, W, IMAGE = t(2, 5, 8), t(8), t(2, 8, 4, 4)
SUMS = t(2, 5, 1)
PLAIN: dict[Any, list[tuple[Any, ...]]] = {
    **{one: [(X,)] for one in (aten.silu.default, aten.hardswish.default)},
    aten.gelu.default: [(X,), (X.transpose(1, 2),)],
    aten.roll.default: [(X, [1, 2], [0, 1]), (X.transpose(1, 2), [1], [1])],
    **{one: [(X, X)] for one in (aten.gelu_backward.default, aten.silu_backward.default)},
    **{one: [(X, X)] for one in (aten.hardswish_backward.default, aten.sigmoid_backward.default)},
    aten.tanh_backward.default: [(X, X)],
    **{one: [(X, X)] for one in (aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor)},
    aten._softmax.default: [(X, -1, False), (X.transpose(1, 2), 1, False)],
    aten._softmax_backward_data.default: [(X, X, -1, torch.float32), (*[X.transpose(1, 2)] * 2, -1, torch.float32)],
    aten.addmm.default: [(t(3), t(7, 8), t(8, 3))],
    aten.native_layer_norm.default: [(X, [8], W, W, 1e-5), (X, [8], None, None, 1e-5), (X, [5, 8], None, None, 1e-5)],
    aten.native_layer_norm_backward.default: [
        (X, X, [8], SUMS, SUMS, W, W, [True, True, True]),
        (X, X, [8], SUMS, SUMS, W, W, [False, True, False]),
    ],
    aten.native_batch_norm.default: [(IMAGE, W, W, W, W, True, 0.1, 1e-5), (IMAGE, W, W, W, W, False, 0.1, 1e-5)],
    aten.native_batch_norm_backward.default: [
        (IMAGE, IMAGE, W, W, W, W, W, True, 1e-5, [True, True, True]),
        (IMAGE, IMAGE, W, W, W, W, W, False, 1e-5, [True, False, False]),
    ],
}
OTHERS: dict[Any, tuple[Any, ...]] = {  # broadcast, of other dtypes or strides, or wrong
    aten.add.Tensor: (X, W),
    aten.mul.Tensor: (X, t(2, 5, 8, dtype=torch.bfloat16)),
    aten.sub.Tensor: (X, t(5, 2, 8).transpose(0, 1)),
    aten.div.Tensor: (X.long(), X.long()),
    aten._softmax.default: (X, 7, False),
    aten.addmm.default: (t(3), t(7, 8), t(9, 3)),
    aten.native_layer_norm.default: (X, [7], None, None, 1e-5),
}


def told(result: Any) -> list[tuple[Any, ...] | None]:
    given = result if isinstance(result, tuple) else (result,)
    return [None if one is None else (one.shape, one.dtype, one.stride(), one.device) for one in given]


def test_every_shortcut_has_an_example() -> None:
    assert set(PLAIN) == set(RULES)


@pytest.mark.parametrize(("operator", "args"), [(one, args) for one, every in PLAIN.items() for args in every], ids=str)
def test_a_shortcut_gives_what_torch_gives(operator: Any, args: tuple[Any, ...]) -> None:
    found = shortcut(operator, args, {})
    assert found is not None
    assert told(found) == told(operator(*args))


@pytest.mark.parametrize("operator", OTHERS, ids=str)
def test_what_is_not_plain_is_left_to_torch(operator: Any) -> None:
    assert shortcut(operator, OTHERS[operator], {}) is None
