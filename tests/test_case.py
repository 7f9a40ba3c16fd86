"""One point of a sweep: its id, its flat form, its refusals."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from examples import cases

from vitbench.case import ITEMSIZE, Case
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.refusal import Refusal
from vitbench.shape import Shape

EXAMPLES = cases(dtypes=tuple(ITEMSIZE)) + cases(dtypes=("float32",), device="cuda")
VIT = Shape(8, 14, 14, 768, 12, prefix=1)


def test_the_id_of_a_case_is_stable_and_readable() -> None:
    window = Case(Window(7, 3), Shape(8, 56, 56, 96, 3), "sdpa.fold")
    assert window.id == "window7-shift3.sdpa.fold.b8.56x56.d96.h3.float32.cpu.layer.inference"
    vit = Case(Global(), VIT, "naive", "bfloat16", "cuda", "core", "training")
    assert vit.id == "global.naive.b8.1+14x14.d768.h12.bfloat16.cuda.core.training"


def test_unlike_cases_have_unlike_ids() -> None:
    shapes = [Shape(*size) for size in [(1, 2, 34, 8, 2), (12, 3, 4, 8, 2), (1, 23, 4, 8, 2), (1, 2, 3, 8, 4)]]
    shapes += [Shape(1, 2, 34, 8, 2, prefix=1), Shape(1, 2, 3, 48, 2), Shape(1, 3, 2, 8, 4)]
    several = [*EXAMPLES, *(Case(Global(), shape, "naive") for shape in shapes)]
    assert len({case.id for case in several}) == len(set(several)) == len(several)


def test_equal_cases_are_one() -> None:
    again = cases(dtypes=tuple(ITEMSIZE)) + cases(dtypes=("float32",), device="cuda")
    assert set(again) == set(EXAMPLES)
    assert [case.id for case in again] == [case.id for case in EXAMPLES]


def test_a_case_comes_back_from_its_flat_form_through_json() -> None:
    for case in EXAMPLES:
        assert Case.from_dict(json.loads(json.dumps(case.to_dict()))) == case


def test_the_flat_form_holds_each_value_under_its_own_name() -> None:
    assert Case(Window(7, 3), Shape(8, 56, 56, 96, 3), "sdpa.fold").to_dict() == {
        "operator": "window", "window": 7, "shift": 3, "backend": "sdpa.fold",
        "batch": 8, "height": 56, "width": 56, "prefix": 0, "dim": 96, "heads": 3,
        "dtype": "float32", "device": "cpu", "scope": "layer", "mode": "inference", "copy": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dtype": "float8"}, "unknown dtype 'float8'; known: float32, bfloat16, float16, float64"),
        ({"device": "tpu"}, "unknown device 'tpu'; known: cpu, cuda"),
        ({"scope": "all"}, "global has no scope 'all'; known: core, layer, block"),
        ({"scope": "model"}, "global has no scope 'model'; known: core, layer, block"),
        ({"mode": "both"}, "unknown mode 'both'; known: inference, training"),
        ({"shape": Shape(0, 4, 4, 8, 2)}, "batch 0 is less than 1"),
        ({"shape": Shape(1, -4, 4, 8, 2)}, "height -4 is less than 1"),
        ({"shape": Shape(1, 4, 0, 8, 2)}, "width 0 is less than 1"),
        ({"shape": Shape(1, 4, 4, 8, 0)}, "heads 0 is less than 1"),
        ({"shape": Shape(1, 4, 4, 8, 2, prefix=-1)}, "prefix -1 is less than 0"),
        ({"shape": Shape(1, 4, 4, 8, 3)}, "dim 8 is not divisible by 3 heads"),
        ({"operator": Window(4, 4)}, "shift 4 is not within 0 and window 4"),
        ({"operator": Window(4), "shape": VIT}, "no place for prefix tokens; expected prefix 0, not 1"),
    ],
)
def test_a_refusal_names_the_value_and_what_was_expected(changed: dict[str, Any], message: str) -> None:
    sound = {"operator": Global(), "shape": Shape(1, 4, 4, 8, 2), "backend": "naive"}
    with pytest.raises(Refusal, match=re.escape(message)):
        Case(**{**sound, **changed})


def test_an_operator_that_is_not_known_is_refused_on_reading() -> None:
    with pytest.raises(Refusal, match="unknown operator 'nothing'"):
        Case.from_dict({**EXAMPLES[0].to_dict(), "operator": "nothing"})


@pytest.mark.parametrize(("dtype", "size"), [("float64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_bytes_follow_from_the_dtype(dtype: str, size: int) -> None:
    sizes = Case(Window(7, 3), Shape(2, 14, 14, 96, 3), "naive", dtype).tensors()
    assert sizes.entries == 2 * 4
    assert sizes.features == 2 * 196 * 96 * size
    assert sizes.scores == 2 * 4 * 3 * 49 * 49 * size
    assert sizes.bias == 3 * 49 * 49 * size
    assert sizes.merged == 4 * 3 * 49 * 49 * size
    assert sizes.mask == 4 * 49 * 49  # bools


def test_a_case_without_bias_and_mask_has_no_bytes_for_them() -> None:
    sizes = Case(Global(), VIT, "naive").tensors()
    assert (sizes.mask, sizes.bias, sizes.merged) == (0, 0, 0)


def test_a_record_of_an_older_version_lacks_what_came_later_and_is_read() -> None:
    flat = Case(Window(7, 0), Shape(8, 56, 56, 96, 3), "sdpa.fold").to_dict()
    older = {name: value for name, value in flat.items() if name not in ("copy", "shift", "prefix")}
    assert Case.from_dict(older) == Case.from_dict(flat)


@pytest.mark.parametrize("lacking", ["operator", "window", "batch", "dim", "backend"])
def test_a_case_that_lacks_what_it_needs_is_refused(lacking: str) -> None:
    flat = Case(Window(7, 0), Shape(8, 56, 56, 96, 3), "sdpa.fold").to_dict()
    del flat[lacking]
    with pytest.raises(Refusal, match=f"a case lacks '{lacking}'"):
        Case.from_dict(flat)


@pytest.mark.parametrize("changed", [{"operator": []}, {"backend": None}, {"window": "7"}, {"batch": 1.0}])
def test_a_case_of_wrong_types_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        Case.from_dict({**Case(Window(7, 0), Shape(8, 56, 56, 96, 3), "sdpa.fold").to_dict(), **changed})
