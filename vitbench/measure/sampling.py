"""Samples of one call: warmed up until stable, then timed by pytest-benchmark between two canaries."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vitbench.measure import telemetry
from vitbench.measure.canary import canary
from vitbench.measure.clock import CLOCKS_RISE, EventTimer, preparation, warm_up

LEAST_ROUNDS, MOST_ROUNDS = 3, 100
BUSY = 0.05  # seconds of work that is queued before NVML is read

Reading = dict[str, Any]  # of vitbench.measure.telemetry


@dataclass(frozen=True)
class Samples:
    """seconds: of each call. canary: seconds just before and just after, or none. telemetry: likewise, of the GPU.

    host_seconds, exposed: as in a record. spent: seconds by stage.
    """

    seconds: list[float]
    canary: tuple[float, float] | None = None
    telemetry: tuple[Reading, Reading] | None = None
    host_seconds: list[float] | None = None
    exposed: int | None = None
    spent: dict[str, float] = field(default_factory=dict)


def sample(call: Callable[[], Any], device: str, cache: str, seconds: float, now: Any, benchmark: Any) -> Samples:
    """seconds: of samples wanted. now: the timer that benchmark, the fixture of pytest-benchmark, was made with."""
    prepare, warmed = preparation(device, call, cache), [0.0]

    def once() -> float:
        prepare()
        start = now()
        call()
        warmed.append(float(now() - start))
        return warmed[-1]

    usual = warm_up(once, seconds, CLOCKS_RISE[device])
    rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, int(seconds / max(usual, 1e-9))))
    started, before, exposed = time.perf_counter(), _observed(call, device, usual), _exposed(now)
    canaries = time.perf_counter() - started
    benchmark.pedantic(call, setup=prepare, rounds=rounds)
    exposed, launches = _exposed(now) - exposed, list(now.launches[-rounds:]) if isinstance(now, EventTimer) else []
    ended, after = time.perf_counter(), _observed(call, device, usual)
    canaries += time.perf_counter() - ended
    taken = [round(float(value), 9) for value in benchmark.stats.stats.data]  # no clock here tells less than 1 ns
    return Samples(
        taken,
        (before[1], after[1]),
        (before[0], after[0]),
        [round(value, 9) for value in launches] or None,
        exposed if launches else None,
        {"warm_up": sum(warmed), "samples": sum(taken), "canary": canaries},
    )


def _observed(call: Callable[[], Any], device: str, usual: float) -> tuple[Reading, float]:
    """What NVML says of the GPU while it is at work, and the canary."""
    uuid = telemetry.uuid_of(device)
    if uuid:  # what slows a GPU is seen only while it runs
        for _ in range(min(MOST_ROUNDS, int(BUSY / max(usual, 1e-6)) + 1)):
            call()
    return telemetry.read(uuid), canary(device)


def _exposed(now: Any) -> int:
    return now.exposed if isinstance(now, EventTimer) else 0
