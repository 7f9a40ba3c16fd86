"""Samples of one call between two canaries: warmed up until stable, then timed by pytest-benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vitbench.measure.canary import canary
from vitbench.measure.clock import CLOCKS_RISE, EventTimer, preparation, warm_up

LEAST_ROUNDS, MOST_ROUNDS = 3, 100


@dataclass(frozen=True)
class Samples:
    """seconds: of each call. canary: seconds before and after, or none. host_seconds, exposed: as in a record."""

    seconds: list[float]
    canary: tuple[float, float] | None = None
    host_seconds: list[float] | None = None
    exposed: int | None = None
    spent: dict[str, float] = field(default_factory=dict)


def sample(call: Callable[[], Any], device: str, cache: str, seconds: float, now: Any, benchmark: Any) -> Samples:
    """seconds: of samples wanted. now: the timer that benchmark, the fixture of pytest-benchmark, was made with."""
    prepare, started = preparation(device, call, cache), time.perf_counter()
    before, warmed = canary(device), [0.0]

    def once() -> float:
        prepare()
        start = now()
        call()
        warmed.append(float(now() - start))
        return warmed[-1]

    canaries = time.perf_counter() - started
    usual = warm_up(once, seconds, CLOCKS_RISE[device])
    rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, int(seconds / max(usual, 1e-9))))
    exposed = now.exposed if isinstance(now, EventTimer) else 0
    benchmark.pedantic(call, setup=prepare, rounds=rounds)
    taken = [round(float(value), 9) for value in benchmark.stats.stats.data]  # no clock here tells less than 1 ns
    ended = time.perf_counter()
    after = canary(device)
    canaries += time.perf_counter() - ended
    spent = {"warm_up": sum(warmed), "samples": sum(taken), "canary": canaries}
    if not isinstance(now, EventTimer):
        return Samples(taken, (before, after), spent=spent)
    launches = [round(value, 9) for value in now.launches[-rounds:]]
    return Samples(taken, (before, after), launches, now.exposed - exposed, spent)
