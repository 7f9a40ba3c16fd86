"""The order of a run and its time left, from what a calibration of this machine predicts; and without one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vitbench.calibrate.document import FILE
from vitbench.case import Case
from vitbench.cpu import CONSTANTS
from vitbench.evidence import Effort
from vitbench.operators.global_ import Global
from vitbench.pace import CALLS, FIRST_CALLS, FIRST_VISIT, START, VISIT, Pace, on_paper, predicted, shuffled
from vitbench.plan import Plan
from vitbench.run import Run, _ended
from vitbench.shape import Shape

HERE = {"cpu": "a CPU", "cores": 2, "threads": 2}
RATES = {one.name: one.start for one in CONSTANTS}


def case(side: int, backend: str = "naive", **rest: Any) -> Case:
    return Case(Global(), Shape(1, side, side, 64, 2), backend, **rest)


CASES = [case(side, backend) for side in (24, 8, 40) for backend in ("naive", "sdpa")]


def calibration(folder: Path, times: dict[str, float], environment: dict[str, Any] = HERE) -> None:
    content = {
        "environment": environment,
        "constants": [{"name": name, "value": value} for name, value in RATES.items()],
        "times": [{"id": id_, "seconds": 1.0, "predicted": value} for id_, value in times.items()],
        "log_error_quantiles": {},
    }
    folder.mkdir(parents=True)
    (folder / FILE).write_text(json.dumps(content))


def test_a_case_is_predicted_as_in_the_calibration_or_else_on_paper(tmp_path: Path) -> None:
    others = [case(8, dtype="bfloat16"), case(8, device="cuda"), case(8, "fused.flex")]
    calibration(tmp_path / "reference" / "run", {CASES[0].id: 0.25})
    found = predicted([*CASES, *others], tmp_path, HERE)
    assert found == {CASES[0].id: 0.25, **{one.id: on_paper(one, RATES) for one in CASES[1:]}}
    assert 0 < found[CASES[2].id] < found[CASES[4].id]


def test_nothing_is_predicted_without_a_calibration_of_this_machine(tmp_path: Path) -> None:
    assert predicted(CASES, tmp_path / "missing", HERE) == {}
    calibration(tmp_path / "run", {}, {**HERE, "threads": 4})
    assert predicted(CASES, tmp_path, HERE) == {}
    (tmp_path / "run" / FILE).write_text("{")
    assert predicted(CASES, tmp_path, HERE) == {}


def test_groups_that_will_be_compared_come_cheapest_first_and_stay_shuffled_within() -> None:
    seconds = {one.id: float(one.shape.tokens) for one in CASES}
    orders = [shuffled(CASES, seed, seconds) for seed in range(20)]
    for order in orders:
        assert [one.shape.height for one in order] == [8, 8, 24, 24, 40, 40]
        assert sorted(order, key=CASES.index) == CASES
    assert len({tuple(order) for order in orders}) > 4
    assert shuffled(CASES, 3, {}) == shuffled(CASES, 3)
    assert any([one.shape.height for one in shuffled(CASES, seed)] != [8, 8, 24, 24, 40, 40] for seed in range(3))


def test_a_visit_takes_its_calls_and_an_unknown_case_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace({CASES[0].id: 1.0, CASES[1].id: 3.0}, began=100.0)
    assert pace.visits(CASES[:2], first=True) == 2 * FIRST_VISIT + FIRST_CALLS * 4
    assert pace.visits(CASES[2:3], first=False) == VISIT + CALLS * 2
    monkeypatch.setattr("time.monotonic", lambda: 130.0)
    assert pace.left(here=0, remaining=5) == 5
    assert pace.left(here=10, remaining=5) == 15.0
    pace.done = 20
    assert pace.left(here=10, remaining=5) == 5.0
    assert Pace({}, began=0).left(here=1, remaining=1) is None


class Worker:
    """A process that ended well."""

    returncode = 0


@pytest.mark.parametrize("known", [True, False])
def test_the_supervisor_tells_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    seen = [{one.id for one in CASES[:n]} for n in (0, 3, 6)]
    clock = itertools.count(10, 10)

    def watched(*_: Any) -> Iterator[set[str]]:
        yield from seen

    monkeypatch.setattr("vitbench.run.start", lambda *_: Worker())
    monkeypatch.setattr("vitbench.run.watch", watched)
    monkeypatch.setattr("vitbench.run.end", lambda _: None)
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    told: list[tuple[int, int, float | None]] = []
    pace = Pace({one.id: 0.1 for one in CASES} if known else {}, began=0.0)
    plan = Plan("smoke", ("x",), "cpu", "warm", 0.1, 0, tuple(CASES), (("x",),) * len(CASES))
    run = Run(tmp_path, plan, Effort(3, 3), "here", lambda *said: told.append((*said[:2], said[3])), 0, None, pace)
    assert _ended(run, 0, CASES, added=False) == 0
    assert [said[:2] for said in told] == [(0, 18), (3, 18), (6, 18)]
    if not known:
        assert [left for *_, left in told] == [None] * 3
        return
    first, later = FIRST_VISIT + FIRST_CALLS * 0.1, VISIT + CALLS * 0.1
    at = [START + 6 * first, 3 * first, 0]  # of this pass, to come
    done = [START + 6 * first - ahead for ahead in at]
    rest = [ahead + 2 * (START + 6 * later) for ahead in at]
    assert [left for *_, left in told] == pytest.approx([rest[0], rest[1] / done[1] * 10, rest[2] / done[2] * 20])
    assert pace.done == pytest.approx(START + 6 * first)
