"""A closed form is written once and takes integers, arrays and symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from examples import example_operators, example_shape

from vitbench.cost import Cost
from vitbench.operator import MODES, SCOPES, Operator, operators, parse_operator
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.shape import Shape

N, D, H, C, M, a, b, h, w, B = sympy.symbols("N D H C M a b h w B", integer=True, positive=True)
PUBLISHED = {  # Liu 2021, equations 1 and 2; the first as in ViT, of N tokens
    "3ND^2 + ND^2 + 2N^2 D": (Global(), Shape(1, 1, N, D, H), 3 * N * D**2 + N * D**2 + 2 * N**2 * D),
    "4hwC^2 + 2(hw)^2 C": (Global(), Shape(1, h, w, C, H), 4 * h * w * C**2 + 2 * (h * w) ** 2 * C),
    "4hwC^2 + 2M^2 hwC": (
        Window(M),
        Shape(1, M * a, M * b, C, H),
        4 * (M * a) * (M * b) * C**2 + 2 * M**2 * (M * a) * (M * b) * C,
    ),
}


@pytest.mark.parametrize("formula", PUBLISHED)
def test_macs_are_the_published_formula(formula: str) -> None:
    operator, shape, published = PUBLISHED[formula]
    assert sympy.expand(operator.cost(shape).total_macs - published) == 0


def test_a_shift_changes_no_mac() -> None:
    shape = Shape(1, M * (a + 1), M * (b + 1), C, H)
    assert sympy.simplify(Window(M, 1).cost(shape).total_macs - Window(M).cost(shape).total_macs) == 0


def test_all_counts_but_parameters_are_proportional_to_the_batch() -> None:
    for operator in (Global(), Window(M)):
        one, many = (operator.core(Shape(batch, M * a, M * b, C, H)) for batch in (1, B))
        for count in ("total_macs", "score_elements", "elementwise"):
            assert sympy.expand(getattr(many, count) - B * getattr(one, count)) == 0


def numbers(cost: Cost) -> dict[str, Any]:
    names = ("score_elements", "useful_score_elements", "elementwise", "parameters", "moved_elements")
    return {**cost.macs, **{name: getattr(cost, name) for name in names}}


def example_texts() -> list[str]:
    return sorted({*map(str, example_operators()), "window7", "window7-shift3", "window4-shift2"})


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("text", example_texts())
def test_arrays_give_the_integers_elementwise(text: str, scope: str) -> None:
    operator = parse_operator(text)
    columns = {
        "batch": [1, 2, 8, 3, 1, 5],
        "height": [5, 7, 60, 56, 1, 30],
        "width": [5, 21, 60, 56, 9, 45],
        "dim": [32, 48, 96, 96, 8, 64],
        "heads": [1, 3, 3, 3, 2, 4],
    }
    arrays = numbers(operator.cost(Shape(**{name: np.array(column) for name, column in columns.items()}), scope))
    for row, values in enumerate(zip(*columns.values(), strict=True)):
        for name, expected in numbers(operator.cost(Shape(*values), scope)).items():
            assert int(np.broadcast_to(arrays[name], 6)[row]) == expected, name


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_counts_of_a_case_are_whole_python_numbers(operator: Operator, scope: str) -> None:
    for mode in MODES:
        for name, value in numbers(operator.cost(example_shape(operator), scope, mode)).items():
            assert type(value) is int, name


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_training_costs_three_times_the_macs_of_inference(operator: Operator, scope: str) -> None:
    shape = example_shape(operator)
    forward, both = (operator.cost(shape, scope, mode) for mode in ("inference", "training"))
    assert both.macs == {term: 3 * macs for term, macs in forward.macs.items()}
    assert both.parameters == forward.parameters
    assert both.score_elements == forward.score_elements


def test_every_registered_operator_names_its_paper() -> None:
    for kind in operators:
        assert any(character.isdigit() for character in kind.paper), kind.name
