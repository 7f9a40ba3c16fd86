"""How operators are written down and read back."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from examples import example_operators, example_shape

from vitbench.case import Case
from vitbench.operator import Operator, parse_operator
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.refusal import Refusal
from vitbench.shape import Shape


@pytest.mark.parametrize("operator", [*example_operators(), Window(12, 6), Window(7, 1)], ids=str)
def test_an_operator_reads_what_it_wrote(operator: Operator) -> None:
    assert parse_operator(str(operator)) == operator


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("global", Global()),
        ("window7", Window(7, 0)),
        ("window7-shift3", Window(7, 3)),
        ("window7-shift0", Window(7, 0)),
        ("window-window7-shift3", Window(7, 3)),
    ],
)
def test_texts_mean_what_they_say(text: str, operator: Operator) -> None:
    assert parse_operator(text) == operator


def test_a_value_that_is_the_default_is_not_written() -> None:
    assert str(Window(7, 0)) == "window7"
    assert str(Window(7, 3)) == "window7-shift3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "unknown operator 'nothing'; known: "),
        ("nothing7", "unknown operator 'nothing'; known: "),
        ("", "operator '' is not of the form"),
        ("7", "operator '7' is not of the form"),
        ("Window7", "operator 'Window7' is not of the form"),
        ("window7-", "operator 'window7-' is not of the form"),
        ("window7-shift", "operator 'window7-shift' is not of the form"),
        ("window7-shift-3", "operator 'window7-shift-3' is not of the form"),
        ("window-7", "operator 'window-7' is not of the form"),
        ("window7.5", "operator 'window7.5' is not of the form"),
        ("global7", "operator 'global' takes no parameter after its name, got 7"),
        ("global-shift3", "operator 'global' has no parameter 'shift'; known: none"),
        ("window7-stride3", "operator 'window' has no parameter 'stride'; known: window, shift"),
        ("window", "operator 'window' lacks a value; it takes: window, shift"),
        ("window-shift3", "operator 'window-shift3' lacks a value; it takes: window, shift"),
    ],
)
def test_what_is_no_operator_is_refused_by_its_value(text: str, message: str) -> None:
    with pytest.raises(Refusal, match=re.escape(message)):
        parse_operator(text)


@pytest.mark.parametrize("text", ["window7-window5", "window7-shift3-shift2"])
def test_a_value_given_twice_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        parse_operator(text)


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_an_unknown_scope_is_refused(operator: Operator) -> None:
    shape, reason = example_shape(operator), f"{operator.name} has no scope 'nothing'; known: {operator.scopes[0]}"
    assert (operator.refused(shape, "nothing") or "").startswith(reason)
    with pytest.raises(Refusal, match=reason):
        operator.cost(shape, "nothing")


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (Window(0), Shape(1, 8, 8, 8, 1), "window 0 is less than 1"),
        (Window(4, 4), Shape(1, 8, 8, 8, 1), "shift 4 is not within 0 and window 4"),
        (Window(4, -1), Shape(1, 8, 8, 8, 1), "shift -1 is not within 0 and window 4"),
    ],
)
def test_windows_refuse_what_they_cannot_cut(operator: Window, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason


@pytest.mark.parametrize("operator", [one for one in example_operators() if not one.prefixed], ids=str)
def test_what_runs_on_a_grid_refuses_tokens_beside_it(operator: Operator) -> None:
    reason = f"{operator.name} runs on a grid, which has no place for prefix tokens; expected prefix 0, not 2"
    assert operator.refused(replace(example_shape(operator), prefix=2), operator.scopes[-1]) == reason


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_parameters_are_numbers_or_words_and_named_as_nothing_else_of_a_case(operator: Operator) -> None:
    flat = Case(operator, example_shape(operator), "naive", scope=operator.scopes[-1]).to_dict()
    own = {field.name: field.type for field in fields(operator)}
    others = {*flat} - {*own}
    assert others == {"operator", *Case.__dataclass_fields__, *Shape.__dataclass_fields__} - {"shape"}
    assert {*own.values()} <= {"int", "str"}
    assert {name for name, kind in own.items() if kind == "str"} == {*operator.choices}


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_operators_are_frozen_and_hashable(operator: Operator) -> None:
    assert len({operator, parse_operator(str(operator))}) == 1
    with pytest.raises(AttributeError):
        operator.name = "another"  # type: ignore[misc]
