"""The check must find what is wrong: each fault here is one that a backend could have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.check import TOLERANCE, error
from vitbench.operator import parse_operator
from vitbench.program import build
from vitbench.shape import Shape

naive = backends["naive"].attend
SHAPE = Shape(2, 5, 7, 24, 3)


def a_hundredth_too_large(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return 1.01 * naive(q, k, v, **given)


def a_tenth_too_large(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return 1.1 * naive(q, k, v, **given)


def wrong_temperature(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return naive(q * q.shape[-1] ** 0.5, k, v, **given)


def one_nan(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    out = naive(q, k, v, **given).clone()
    out[0, -1, 0, -1] = float("nan")
    return out


def one_infinity(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return one_nan(q, k, v, **given).nan_to_num(nan=float("inf"))


def keys_out_of_order(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return naive(q, k.flip(-2), v, **given)


def heads_swapped(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return naive(q, k, v, **given).flip(2)


def no_mask(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor, **_: Any) -> Tensor:
    return naive(q, k, v, bias=bias, mask=None)


def mask_upside_down(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor, **_: Any) -> Tensor:
    upside_down = ~mask | torch.eye(mask.shape[-1], dtype=torch.bool)
    return naive(q, k, v, bias=bias, mask=upside_down)


def masks_of_other_windows(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor, **_: Any) -> Tensor:
    return naive(q, k, v, bias=bias, mask=mask.flip(1))


def no_bias(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor | None, **_: Any) -> Tensor:
    return naive(q, k, v, bias=0 * bias, mask=mask)


def bias_transposed(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor | None, **_: Any) -> Tensor:
    return naive(q, k, v, bias=bias.transpose(-1, -2), mask=mask)


def half_the_gradient(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    return naive(q, k, (v + v.detach()) / 2, **given)


def no_gradient_of_the_bias(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor, mask: Tensor | None, **_: Any) -> Tensor:
    return naive(q, k, v, bias=bias.detach() + 0 * bias, mask=mask)


FAULTS = [a_tenth_too_large, wrong_temperature, one_nan, one_infinity, keys_out_of_order, heads_swapped]
WINDOW_FAULTS = [no_mask, mask_upside_down, masks_of_other_windows, no_bias, bias_transposed]
WRONG = [(operator, fault) for operator in ("global", "window3-shift1") for fault in FAULTS]
WRONG += [("window3-shift1", fault) for fault in WINDOW_FAULTS]
PRECISE = ("float64", "float32")  # 1 % is within the rounding of the others


def found(text: str, fault: Callable[..., Tensor], dtype: str, mode: str, scope: str = "layer") -> bool:
    """Whether the check passes the right program and not the wrong one."""
    case = Case(parse_operator(text), SHAPE, "naive", dtype, scope=scope, mode=mode)
    assert error(case, build(case)) <= TOLERANCE[dtype]
    return not error(case, build(case, attend=partial(fault))) <= TOLERANCE[dtype]


def named(value: Any) -> str:
    return getattr(value, "__name__", value)


@pytest.mark.parametrize("scope", ["core", "layer"])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("text", "fault"), WRONG, ids=named)
def test_a_fault_exceeds_the_tolerance(text: str, fault: Callable[..., Tensor], dtype: str, scope: str) -> None:
    assert found(text, fault, dtype, "inference", scope)


@pytest.mark.parametrize("scope", ["core", "layer", "block"])
@pytest.mark.parametrize("dtype", PRECISE)
@pytest.mark.parametrize(("text", "fault"), [*WRONG, ("global", a_hundredth_too_large)], ids=named)
def test_a_small_fault_exceeds_the_tolerance(text: str, fault: Callable[..., Tensor], dtype: str, scope: str) -> None:
    assert found(text, fault, dtype, "inference", scope)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("global", half_the_gradient),
        ("window3-shift1", half_the_gradient),
        ("window3-shift1", no_gradient_of_the_bias),
        ("window3-shift1", one_nan),
    ],
    ids=named,
)
def test_a_wrong_gradient_exceeds_the_tolerance(text: str, fault: Callable[..., Tensor], dtype: str) -> None:
    assert found(text, fault, dtype, "training")


@pytest.mark.parametrize("text", ["global", "axial", "rope"])
def test_gradients_that_are_0_on_paper_are_judged_by_the_others(text: str) -> None:
    """With one key the softmax is 1, whatever q and k are."""
    for backend in ("naive", "sdpa", "sdpa.flash"):
        for width in (1, 2, 4):
            case = Case(parse_operator(text), Shape(1, 1, width, 192, 3), backend, mode="training")
            assert error(case, build(case)) <= TOLERANCE["float32"], case.id


def test_a_fault_in_few_rows_is_found_beside_large_gradients_of_parameters() -> None:
    """Gradients of parameters grow with the number of tokens, and are no measure of the others."""

    def no_gradient_of_the_last_query(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        return naive(torch.cat([q[..., :-1, :], q[..., -1:, :].detach()], -2), k, v, **given)

    def last_query_zero(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        out = naive(q, k, v, **given)
        return torch.cat([out[..., :-1, :], 0 * out[..., -1:, :]], -2)

    case = Case(parse_operator("global"), Shape(8, 14, 14, 96, 3), "naive", "bfloat16", mode="training")
    assert error(case, build(case)) <= TOLERANCE["bfloat16"]
    assert error(case, build(case, attend=last_query_zero)) > 5 * TOLERANCE["bfloat16"]
    assert error(case, build(case, attend=no_gradient_of_the_last_query)) > TOLERANCE["bfloat16"]
