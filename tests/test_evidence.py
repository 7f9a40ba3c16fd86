"""When another pass is wanted of a case, and in which order cases run."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from vitbench.case import Case
from vitbench.evidence import Effort, samples, wanting
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.run import shuffled
from vitbench.shape import Shape

EFFORT = Effort(least=3, most=5, precision=0.05)


def lines(*states: str, seconds: float = 1.0, step: float = 0.0) -> list[dict[str, Any]]:
    return [
        {"pass": pass_, "state": state, "seconds": [seconds + step * pass_] * 3} for pass_, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "step", "more"),
    [
        ([], 0.0, True),
        (["ok"] * 2, 0.0, True),
        (["ok"] * 3, 0.0, False),  # they agree
        (["ok"] * 3, 0.2, True),  # they do not
        (["ok"] * 5, 0.2, False),  # no more than that
        (["ok", "ok", "disturbed"], 0.0, True),  # a disturbed pass is taken again
        (["ok", "ok", "disturbed", "ok"], 0.0, False),
        (["disturbed"] * 5, 0.0, False),
        (["unsupported"], 0.0, False),  # again would be the same
        (["out_of_memory"], 0.0, False),
        (["ok", "wrong_result"], 0.0, False),
        (["crashed", "ok"], 0.0, True),  # costs one pass
        (["crashed", "timed_out"], 0.0, False),  # twice is enough
    ],
)
def test_another_pass_is_wanted_until_the_evidence_is_enough(states: list[str], step: float, more: bool) -> None:
    assert wanting(lines(*states, step=step), EFFORT) is more


def test_any_interval_is_narrow_enough_where_no_precision_is_asked_for() -> None:
    assert not wanting(lines("ok", "ok", "ok", step=0.2), replace(EFFORT, precision=None))


def test_samples_of_disturbed_passes_and_of_a_wrong_case_are_not_used() -> None:
    assert list(samples(lines("ok", "disturbed", "ok"))) == [0, 2]
    assert samples(lines("ok", "wrong_result")) == {}


def test_cases_that_will_be_compared_run_next_to_one_another_in_an_order_that_changes() -> None:
    shapes = [Shape(1, side, side, 32, 2) for side in range(2, 12)]
    cases = [Case(op, s, b, copy=c) for op in (Global(), Window(2)) for s in shapes for b in "xy" for c in (0, 1)]
    orders = [shuffled(cases, seed) for seed in range(3)]
    for order in orders:
        assert sorted(order, key=cases.index) == cases
        works = [(case.operator, case.shape) for case in order]
        blocks = sum(one != other for one, other in itertools.pairwise(works)) + 1
        assert blocks == len(set(works)) == 20
    assert len({tuple(order) for order in orders}) == 3
    firsts = {order[0].backend + str(order[0].copy) for order in (shuffled(cases, seed) for seed in range(40))}
    assert len(firsts) == 4, "no backend always comes first"
    assert shuffled(cases, 7) == shuffled(cases, 7)
