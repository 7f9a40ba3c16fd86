"""Seconds of one call: host time on the CPU, device time between two events on CUDA.

pytest-benchmark reads a timer before and after the call and subtracts. A timer for CUDA returns an Instant that holds
an event; only the subtraction waits for the device. What prepare() queued keeps the stream busy while the host
launches, so launch latency is NOT in the device time; an EventTimer counts the samples for which that failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

CLOCKS_RISE = {"cpu": 0.0, "cuda": 0.2}  # seconds of work before the device is at its usual speed
FASTEST_CLOCK = 3e9  # Hz; no GPU runs faster, so this many cycles a second is never too short a spin


class EventTimer:
    """Read before and after a call; the later reading minus the earlier is seconds of device time.

    launches: of each difference taken, host seconds between the two readings, which launching the call took. exposed:
    the differences whose launching outlasted what kept the stream busy, so that launch latency may be in them.
    """

    def __init__(self, event: Callable[[], Any] | None = None) -> None:
        self.launches: list[float] = []
        self.exposed = 0
        self._event = event or (lambda: torch.cuda.Event(enable_timing=True))
        self._last: Instant | None = None

    def __call__(self) -> Instant:
        idle = self._last is not None and bool(self._last.event.query())  # the stream has passed the last reading
        self._last = Instant(self, self._event(), time.perf_counter(), idle)
        return self._last


class Instant:
    """A point in a CUDA stream."""

    def __init__(self, timer: EventTimer, event: Any, host: float, idle: bool) -> None:
        self.timer, self.event, self.host, self.idle = timer, event, host, idle
        self.event.record()

    def __sub__(self, earlier: Instant) -> float:
        self.timer.launches.append(self.host - earlier.host)
        self.timer.exposed += self.idle
        self.event.synchronize()
        return float(earlier.event.elapsed_time(self.event)) / 1000  # events give milliseconds


def timer(device: str) -> Callable[[], Any]:
    """What is read before and after a call on the device."""
    return EventTimer() if device == "cuda" else time.perf_counter


def preparation(device: str, call: Callable[[], Any], cache: str) -> Callable[[], None]:
    """What to do before each sample, outside the timed region.

    CUDA: where cache is cold, write a buffer of twice the L2; then spin for longer than the host needs to launch the
    call. CPU: nothing; samples find the caches as the last one left them.
    """
    return _cold_and_busy(call, cold=cache == "cold") if device == "cuda" else _nothing


def _nothing() -> None:
    return None


def _cold_and_busy(call: Callable[[], Any], cold: bool) -> Callable[[], None]:
    size = 2 * torch.cuda.get_device_properties().L2_cache_size if cold else 0
    flushed = torch.empty(size, dtype=torch.int8, device="cuda")
    cycles = int(3 * max(_launch_seconds(call) for _ in range(3)) * FASTEST_CLOCK)

    def prepare() -> None:
        if cold:
            flushed.zero_()
        torch.cuda._sleep(cycles)

    return prepare


def _launch_seconds(call: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def first_call(call: Callable[[], Any], device: str) -> float:
    """Host seconds of one call and its end on the device: compiling, if there is any, is in it."""
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def warm_up(sample: Callable[[], float], most_seconds: float, least_seconds: float = 0.0) -> float:
    """Sample until the last three agree within 5 %, or most_seconds of samples have passed; their median.

    least_seconds: of wall time, before agreement counts; a GPU's clocks need it to rise.
    """
    times: list[float] = []
    start = time.perf_counter()
    while True:
        times.append(sample())
        last = times[-3:]
        if len(last) < 3 or time.perf_counter() - start < least_seconds:
            continue
        if max(last) <= 1.05 * min(last) or sum(times) >= most_seconds:
            return median(last)
