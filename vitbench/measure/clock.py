"""Seconds of one call: host time on the CPU, device time between two events on CUDA.

pytest-benchmark reads a timer before and after the call and subtracts. A timer for CUDA returns an Instant that holds
an event; only the subtraction waits for the device. What prepare() queued keeps the stream busy while the host
launches, so launch latency is NOT in the device time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

CLOCKS_RISE = {"cpu": 0.0, "cuda": 0.2}  # seconds of work before the device is at its usual speed
FASTEST_CLOCK = 3e9  # Hz; no GPU runs faster, so this many cycles a second is never too short a spin


class Instant:
    """A point in a CUDA stream; later - earlier is seconds of device time."""

    def __init__(self, event: Any = None) -> None:
        self.event = event or torch.cuda.Event(enable_timing=True)
        self.event.record()

    def __sub__(self, earlier: Instant) -> float:
        self.event.synchronize()
        return float(earlier.event.elapsed_time(self.event)) / 1000  # events give milliseconds


def timer(device: str) -> Callable[[], Any]:
    """What is read before and after a call on the device."""
    return Instant if device == "cuda" else time.perf_counter


def preparation(device: str, call: Callable[[], Any]) -> Callable[[], None]:
    """What to do before each sample, outside the timed region.

    CUDA: write a buffer of twice the L2, so that every sample starts cold, then spin for longer than the host needs
    to launch the call. CPU: nothing; samples find the caches as the last one left them.
    """
    return _cold_and_busy(call) if device == "cuda" else _nothing


def _nothing() -> None:
    return None


def _cold_and_busy(call: Callable[[], Any]) -> Callable[[], None]:
    flushed = torch.empty(2 * torch.cuda.get_device_properties().L2_cache_size, dtype=torch.int8, device="cuda")
    cycles = int(3 * max(_launch_seconds(call) for _ in range(3)) * FASTEST_CLOCK)

    def prepare() -> None:
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
