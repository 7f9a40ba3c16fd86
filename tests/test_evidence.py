"""When another pass is wanted of a case, and in which order cases run."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vitbench.case import Case
from vitbench.evidence import Effort, ended, usable, wanting
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.pace import shuffled
from vitbench.plan import Plan
from vitbench.process import BudgetSpentError
from vitbench.record import Record, append_line
from vitbench.run import Run, _in_hand, _passes
from vitbench.shape import Shape
from vitbench.worker import TAKES

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
        (["disturbed"] * 5, 0.0, True),  # each taken once, as by a worker that was stopped
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
    assert [line["pass"] for line in usable(lines("ok", "disturbed", "ok"))] == [0, 2]
    assert usable(lines("ok", "wrong_result")) == []


def test_cases_that_will_be_compared_run_next_to_one_another_in_an_order_that_changes() -> None:
    shapes = [Shape(1, side, side, 32, 2) for side in range(2, 12)]
    cases = [Case(op, s, b, copy=c) for op in (Global(), Window(2)) for s in shapes for b in "xy" for c in (0, 1)]
    orders = [shuffled(cases, seed) for seed in range(3)]
    for order in orders:
        assert sorted(order, key=cases.index) == cases
        blocks = sum(one.shape != other.shape for one, other in itertools.pairwise(order)) + 1
        assert blocks == len(shapes)
    assert len({tuple(order) for order in orders}) == 3
    firsts = {order[0].backend + str(order[0].copy) for order in (shuffled(cases, seed) for seed in range(40))}
    assert len(firsts) == 4, "no backend always comes first"
    assert shuffled(cases, 7) == shuffled(cases, 7)


def test_a_worker_that_dies_while_it_takes_a_case_again_was_at_that_case(tmp_path: Path) -> None:
    cases = [Case(Global(), Shape(1, side, side, 32, 2), "naive") for side in (2, 3)]
    plan = Plan("smoke", ("x",), "cpu", "warm", 0.1, 0, tuple(cases), (("x",), ("x",)))
    run = Run(tmp_path, plan, EFFORT, "here", lambda *_: None, 0, None)

    def take(case: Case, state: str) -> None:
        record = Record(case.id, 4, case.to_dict(), state, seconds=[1.0], environment="here")
        append_line(run.records, record.to_dict())

    assert _in_hand(run, 4, cases) == cases[0]
    take(cases[0], "disturbed")
    assert _in_hand(run, 4, cases) == cases[0], "to be taken again"
    take(cases[0], "ok")
    assert _in_hand(run, 4, cases) == cases[1]
    for _ in range(TAKES):
        take(cases[1], "disturbed")
    assert _in_hand(run, 4, cases) is None, "as often as it is taken"


def test_passes_beyond_the_least_are_not_begun_after_the_budget_but_the_least_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(Global(), Shape(1, 2, 2, 32, 2), "naive")
    plan = Plan("smoke", ("x",), "cpu", "warm", 0.1, 0, (case,), (("x",),))
    outcomes = iter(["ok", "disturbed", "ok", "ok", "ok", "ok"])
    passes = []

    def worked(run: Run, pass_: int, cases: list[Case], added: bool) -> int:
        state = next(outcomes)
        record = Record(case.id, pass_, case.to_dict(), state, seconds=[1.0 + pass_] * 3, environment="here")
        for _ in range(TAKES if state == "disturbed" else 1):
            append_line(run.records, record.to_dict())
        passes.append((pass_, added))
        return 0

    monkeypatch.setattr("vitbench.run._ended", worked)
    with pytest.raises(BudgetSpentError):
        _passes(Run(tmp_path, plan, EFFORT, "here", lambda *_: None, 0, until=0.0))
    assert passes == [(0, False), (1, False), (2, False), (3, False)], "the disturbed one is made up for"
    _passes(Run(tmp_path, plan, EFFORT, "here", lambda *_: None, 0, until=None))
    assert passes[4:] == [(4, True)], "gone on with, up to the most"


def test_a_disturbed_pass_is_over_once_it_was_taken_as_often_as_it_is() -> None:
    once = {"pass": 0, "state": "disturbed", "seconds": [1.0]}
    assert ended([once] * (TAKES - 1)) == set()
    assert ended([once] * TAKES) == {0}
    assert ended([once, {**once, "state": "ok"}, {**once, "pass": 1}]) == {0}
    assert wanting([once], Effort(1, 1)), "after Ctrl-C in a retake"
    assert not wanting([once] * TAKES, Effort(1, 1))
