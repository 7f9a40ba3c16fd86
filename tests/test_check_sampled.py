"""Where score matrices are large, only some rows are checked; they must be the rows that the reference computed."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.check import MOST_ROWS, SAMPLED_ROWS, TOLERANCE, error
from vitbench.operator import parse_operator
from vitbench.program import build
from vitbench.shape import Shape

LARGE = {
    "global": Shape(1, 40, 26, 8, 1, prefix=1),
    "window33": Shape(1, 66, 66, 4, 1),  # four windows of 1089 tokens each
    "window33-shift16": Shape(1, 66, 66, 4, 1),
    "window64": Shape(1, 33, 40, 4, 1),  # one window over the grid
}


def large_case(text: str, scope: str, mode: str) -> Case:
    case = Case(parse_operator(text), LARGE[text], "sdpa", scope=scope, mode=mode)
    assert case.attentions[0].queries > MOST_ROWS
    return case


@pytest.mark.parametrize("scope", ["core", "layer", "block"])
@pytest.mark.parametrize("text", LARGE)
def test_a_right_result_of_many_rows_passes(text: str, scope: str) -> None:
    case = large_case(text, scope, "inference")
    assert error(case, build(case)) <= TOLERANCE["float32"]


@pytest.mark.parametrize("text", ["global", "window33-shift16"])
def test_right_gradients_of_many_rows_pass(text: str) -> None:
    case = large_case(text, "layer", "training")
    assert error(case, build(case)) <= TOLERANCE["float32"]


@pytest.mark.parametrize("text", ["global", "window64"])
def test_a_fault_in_every_row_of_many_is_found(text: str) -> None:
    case = large_case(text, "layer", "inference")

    def a_thousandth_too_large(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        return 1.001 * backends["naive"].attend(q, k, v, **given)

    assert not error(case, build(case, attend=a_thousandth_too_large)) <= TOLERANCE["float32"]


def test_the_sample_is_small_beside_what_is_always_checked_whole() -> None:
    assert 32 <= SAMPLED_ROWS < MOST_ROWS
