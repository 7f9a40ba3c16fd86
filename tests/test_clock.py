"""Seconds of a call: events are recorded without waiting, and only the subtraction waits."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from vitbench.measure.clock import EventTimer, preparation, timer, warm_up


class FakeEvent:
    """The n-th event of a log happens at n * n milliseconds."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.milliseconds: float | None = None

    def record(self) -> None:
        count = sum(line.startswith("record") for line in self.log)
        self.milliseconds = float(count * count)
        self.log.append(f"record {count}")

    def query(self) -> bool:
        """Whether the stream has passed it: only where the test says that launching took too long."""
        return "late" in self.log

    def synchronize(self) -> None:
        assert self.milliseconds is not None, "waited for an event that was never recorded"
        self.log.append("synchronize")

    def elapsed_time(self, later: FakeEvent) -> float:
        assert self.log[-1] == "synchronize", "read before the later event was over"
        assert self.milliseconds is not None and later.milliseconds is not None
        return later.milliseconds - self.milliseconds


LOG: list[str] = []


NOW = EventTimer(lambda: FakeEvent(LOG))


@pytest.fixture(autouse=True)
def now() -> Iterator[EventTimer]:
    LOG.clear()
    NOW.launches.clear()
    NOW.exposed = 0
    NOW._last = None
    yield NOW


def test_nothing_waits_until_the_later_instant_is_recorded_and_subtracted(now: EventTimer) -> None:
    start = now()
    LOG.append("call")
    end = now()
    assert LOG == ["record 0", "call", "record 1"]
    assert end - start == 0.001
    assert LOG == ["record 0", "call", "record 1", "synchronize"]


def test_a_difference_is_in_seconds(now: EventTimer) -> None:
    instants = [now() for _ in range(4)]
    assert [end - start for start, end in itertools.pairwise(instants)] == [0.001, 0.003, 0.005]
    assert instants[3] - instants[0] == 0.009


def test_the_host_time_of_a_launch_is_kept_beside_the_device_time(now: EventTimer) -> None:
    start = now()
    time.sleep(0.01)
    end = now()
    assert end - start == 0.001
    assert len(now.launches) == 1 and 0.01 <= now.launches[0] < 10


def test_a_sample_is_exposed_if_the_stream_ran_dry_while_its_call_was_launched(now: EventTimer) -> None:
    start = now()
    assert now() - start > 0 and now.exposed == 0
    start = now()
    LOG.append("late")
    assert now() - start > 0 and now.exposed == 1


@pytest.mark.benchmark(timer=NOW)
def test_pytest_benchmark_keeps_the_device_times_of_an_instant(benchmark: Any) -> None:
    calls: list[str] = []
    benchmark.pedantic(lambda: calls.append("call"), setup=lambda: calls.append("set up"), rounds=4)
    recorded = [line for line in LOG if line.startswith("record")]
    starts = range(len(recorded) - 2 * 4, len(recorded), 2)  # of the timed rounds, whatever was read before them
    expected = [((start + 1) ** 2 - start**2) / 1000 for start in starts]
    assert list(benchmark.stats.stats.data) == expected
    assert calls == ["set up", "call"] * 4


def test_the_cpu_is_timed_with_perf_counter() -> None:
    assert timer("cpu") is time.perf_counter
    assert isinstance(timer("cuda"), EventTimer)
    assert timer("cuda") is not timer("cuda"), "each keeps its own launches"


def test_nothing_is_prepared_on_the_cpu() -> None:
    calls: list[int] = []
    preparation("cpu", lambda: calls.append(1), "warm")()
    assert calls == []


def sampler(times: list[float]) -> Iterator[float]:
    yield from times
    raise AssertionError("sampled on although there was reason to stop")


@pytest.mark.parametrize(
    ("times", "usual"),
    [
        ([1.0, 1.0, 1.0], 1.0),
        ([9.0, 3.0, 1.0, 1.04, 1.02], 1.02),
        ([2.0, 1.0, 1.05, 1.02], 1.02),  # within 5 %
        ([0.0, 0.0, 0.0], 0.0),
    ],
)
def test_warming_up_ends_when_three_samples_agree(times: list[float], usual: float) -> None:
    samples = sampler(times)
    assert warm_up(lambda: next(samples), most_seconds=1e9) == usual
    with pytest.raises(AssertionError, match="sampled on"):
        next(samples)


def test_warming_up_ends_when_its_time_is_over() -> None:
    samples = sampler([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    assert warm_up(lambda: next(samples), most_seconds=9.0) == 2.0
    with pytest.raises(AssertionError, match="sampled on"):
        next(samples)


def test_warming_up_takes_three_samples_however_short_its_time() -> None:
    samples = sampler([3.0, 1.0, 2.0])
    assert warm_up(lambda: next(samples), most_seconds=0.0) == 2.0
