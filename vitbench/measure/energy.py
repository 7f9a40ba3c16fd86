"""The energy of a call, from the counter that NVML keeps of the whole GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from vitbench.measure import telemetry

POWER_RISES = 0.2  # seconds of work before the power is that of the work
BATCH_SECONDS = 0.01  # of calls between two looks at the energy counter
STILL_SECONDS = 1.0  # ten times the longest step of the counter


def joules(
    call: Callable[[], Any], uuid: str | None, synchronize: Callable[[], Any], least_seconds: float = 1.0
) -> tuple[float | None, str | None]:
    """Joules of one call of a warm program, the GPU kept busy; or None and why not, in a sentence.

    The counter moves in steps of up to 0.1 s. So calls repeat, at least 0.2 s and then least_seconds, and are counted
    from one step to another. Error: two batches of 10 ms in least_seconds (2 % of the default); for a call longer
    than that, two calls or 0.1 s and a launch, whichever is less. It is the energy of the whole GPU, whoever else
    is on it. What the call raises is passed on.
    """

    def launched() -> int:
        for _ in range(calls):
            call()
        try:  # while the GPU works, for a question takes milliseconds in which it would idle
            return int(telemetry.ask(nvml, "nvmlDeviceGetTotalEnergyConsumption", gpu))
        finally:
            synchronize()

    try:
        nvml, gpu = telemetry.handle(uuid)
        calls = max(1, int(BATCH_SECONDS / _seconds(call, synchronize)))
        first, _ = _until_step(launched, POWER_RISES)
        last, batches = _until_step(launched, least_seconds)
    except telemetry.Unread as unread:
        return None, str(unread)
    if last <= first:
        return None, f"NVML's energy counter went back from {first} to {last} mJ; measure again"
    return (last - first) / 1000 / (batches * calls), None


def _seconds(call: Callable[[], Any], synchronize: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    synchronize()
    return time.perf_counter() - start


def _until_step(launched: Callable[[], int], least_seconds: float) -> tuple[int, int]:
    """Batches until the counter steps after least_seconds: what it then says, and how many. Raises Unread."""
    start, before, batches = time.perf_counter(), launched(), 1
    while True:
        now, batches = launched(), batches + 1
        seconds = time.perf_counter() - start
        if now != before and seconds >= least_seconds:
            return now, batches
        if now == before and seconds > least_seconds + STILL_SECONDS:
            raise telemetry.Unread(
                f"NVML's energy counter stands still at {now} mJ; virtual GPUs and some drivers count nothing"
            )
        before = now
