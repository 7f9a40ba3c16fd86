"""A pass during which the machine changed its speed is told by a fixed product around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vitbench import trial
from vitbench.case import Case
from vitbench.measure import canary as module
from vitbench.measure import sampling
from vitbench.measure.canary import canary, disturbed
from vitbench.measure.sampling import Samples, sample
from vitbench.operators.global_ import Global
from vitbench.record import Record
from vitbench.shape import Shape

CASE = Case(Global(), Shape(1, 2, 2, 8, 2), "naive")


def record_between(before: float, after: float) -> Record:
    def time_call(call: Callable[[], Any]) -> Samples:
        return Samples([0.25], (before, after))

    return trial.run(CASE, time_call, probe=False)


@pytest.mark.parametrize(("before", "after"), [(1.0, 1.099), (1.099, 1.0), (1.0, 1.0)])
def test_a_machine_that_keeps_its_speed_disturbs_nothing(before: float, after: float) -> None:
    assert disturbed(before, after) is None
    assert record_between(before, after).state == "ok"


@pytest.mark.parametrize(("before", "after"), [(0.003, 0.0034), (0.0034, 0.003)])
def test_a_drift_above_10_percent_marks_the_pass_and_keeps_its_samples(before: float, after: float) -> None:
    record = record_between(before, after)
    assert (record.state, record.seconds, record.canary) == ("disturbed", [0.25], [before, after])
    assert record.reason is not None and f"{before * 1e3:.3g} ms before and {after * 1e3:.3g} ms after" in record.reason


def test_the_canary_is_the_median_of_three_products(monkeypatch: pytest.MonkeyPatch) -> None:
    times: Iterator[float] = iter([0.0, 5.0, 10.0, 11.0, 20.0, 23.0])
    monkeypatch.setattr(module, "timer", lambda device: lambda: next(times))
    assert canary("cpu") == 3.0
    assert next(times, None) is None, "each product is timed once"


def test_the_canary_of_this_machine_is_a_product_that_takes_time() -> None:
    macs = 768**3
    assert 1e9 < macs / canary("cpu") < 1e13


def test_samples_lie_between_two_canaries_and_say_where_the_time_went(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    found = iter([1.0, 2.0])

    def fake(device: str) -> float:
        log.append("canary")
        return next(found)

    monkeypatch.setattr(sampling, "canary", fake)
    clock = benchmark._timer
    taken = sample(lambda: log.append("call"), "cpu", "warm", 0.01, clock, benchmark)
    assert taken.canary == (1.0, 2.0)
    assert log[-102:] == ["canary", *["call"] * 100, "canary"] and "canary" not in log[:-102], "just before, just after"
    assert len(taken.seconds) == 100 and taken.host_seconds is None and taken.exposed is None
    assert taken.spent["samples"] == pytest.approx(sum(taken.seconds), abs=1e-7)
    assert set(taken.spent) == {"samples", "warm_up", "canary"}
