"""A closed form is written once and takes integers, arrays and symbols."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy
from examples import example_operators, example_shape

from vitbench.cost import Cost, total
from vitbench.model import Variant, models
from vitbench.models.swin import Swin
from vitbench.operator import MODES, Operator, operators, parse_operator
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
        one, many = (operator.cost(Shape(batch, M * a, M * b, C, H), "core") for batch in (1, B))
        for count in ("total_macs", "score_elements", "elementwise"):
            assert sympy.expand(getattr(many, count) - B * getattr(one, count)) == 0


def numbers(cost: Cost) -> dict[str, Any]:
    names = ("score_elements", "useful_score_elements", "elementwise", "parameters", "moved_elements")
    return {**cost.macs, **{name: getattr(cost, name) for name in names}}


SCOPED = [(operator, scope) for operator in example_operators() for scope in operator.scopes]
SIDES = ((5, 5), (7, 21), (60, 60), (56, 56), (1, 9), (30, 45), (12, 24), (8, 16))


@pytest.mark.parametrize(
    "operator", [*example_operators(), *map(parse_operator, ("window7", "window7-shift3", "window4-shift2"))], ids=str
)
def test_arrays_give_the_integers_elementwise(operator: Operator) -> None:
    widths, prefixes = ((96, 3), (32, 2), (64, 4), (64, 1), (192, 6)), (0, 1)
    found = [
        Shape(batch, height, width, dim, heads, prefix)
        for (height, width), (dim, heads), batch, prefix in product(SIDES, widths, (1, 2, 12), prefixes)
    ]
    shapes = [shape for shape in found if operator.refused(shape, operator.scopes[-1]) is None]
    assert len(shapes) > 3
    columns = {field: np.array([getattr(shape, field) for shape in shapes]) for field in Shape.__dataclass_fields__}
    for scope in operator.scopes:
        arrays = numbers(operator.cost(Shape(**columns), scope))
        for row, shape in enumerate(shapes):
            for name, expected in numbers(operator.cost(shape, scope)).items():
                assert int(np.broadcast_to(arrays[name], len(shapes))[row]) == expected, name


@pytest.mark.parametrize(("operator", "scope"), SCOPED, ids=str)
def test_counts_of_a_case_are_whole_python_numbers(operator: Operator, scope: str) -> None:
    for mode in MODES:
        for name, value in numbers(operator.cost(example_shape(operator), scope, mode)).items():
            assert type(value) is int, name


@pytest.mark.parametrize(("operator", "scope"), SCOPED, ids=str)
def test_training_costs_three_times_inference_less_the_gradients_of_constants(operator: Operator, scope: str) -> None:
    shape = example_shape(operator)
    forward, both = (operator.cost(shape, scope, mode) for mode in ("inference", "training"))
    assert both.macs == {term: 3 * macs - forward.constant.get(term, 0) for term, macs in forward.macs.items()}
    assert both.parameters == forward.parameters
    assert both.score_elements == forward.score_elements


@pytest.mark.parametrize("variant", [*models], ids=lambda variant: variant.name)
def test_equal_blocks_counted_once_cost_what_they_cost_one_by_one(variant: Variant) -> None:
    model, shape = variant.model, variant.shape()
    cores = [attention.cost() for attention in model.attentions(shape)]
    assert model.cost(shape, "model")[:-1] == total((1, [*cores, model.around(shape)]))[:-1]  # all but what is moved


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_every_other_attention_of_swin_is_shifted_to_the_last(depth: int) -> None:
    shifted = [attention.mask is not None for attention in Swin(4, depth).attentions(Shape(1, 64, 64, 96, 3))]
    assert shifted == [False, True, False, True, *(n % 2 == 1 for n in range(depth)), False, True]


def test_adding_costs_changes_none_of_them() -> None:
    arrays = [np.arange(3) for _ in range(6)]
    one = Cost({"qkv": arrays[0]}, {"qkv": arrays[1]}, *arrays[2:])
    whole = total((2, (one, one)), (1, (one,)))
    assert all((array == np.arange(3)).all() for array in arrays)
    assert all((found == 5 * np.arange(3)).all() for found in (whole.macs["qkv"], whole.constant["qkv"], *whole[2:6]))


def test_sides_given_as_a_row_and_a_column_make_a_table() -> None:
    columns, rows = np.array([[14], [7]]), np.array([14, 21, 28])
    whole = total((1, (Cost(elementwise=columns), Cost(elementwise=rows))))
    assert whole.elementwise.tolist() == [[28, 35, 42], [21, 28, 35]]
    for operator in (Global(), Window(7)):
        macs = operator.cost(Shape(1, columns, rows, 96, 3), "block").total_macs
        assert macs[1, 2] == operator.cost(Shape(1, 7, 28, 96, 3), "block").total_macs


def test_a_cost_cannot_be_changed_and_can_be_sent() -> None:
    empty: Any = Cost()
    for change in (lambda: setattr(empty, "parameters", 1), lambda: empty.macs.update(qkv=1)):
        with pytest.raises(AttributeError):
            change()
    for mode in MODES:
        cost = Global().cost(Shape(1, 14, 14, 768, 12, 1), "block", mode)
        assert pickle.loads(pickle.dumps(cost)) == cost


def test_every_registered_operator_names_its_paper() -> None:
    for kind in operators:
        assert any(character.isdigit() for character in kind.paper), kind.name
