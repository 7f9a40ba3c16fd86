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
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    cycles = int(2 * (time.perf_counter() - start) * FASTEST_CLOCK)
    torch.cuda.synchronize()

    def prepare() -> None:
        flushed.zero_()
        torch.cuda._sleep(cycles)

    return prepare


def first_call(call: Callable[[], Any], device: str) -> float:
    """Host seconds of one call and its end on the device: compiling, if there is any, is in it."""
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def warm_up(sample: Callable[[], float], most_seconds: float) -> float:
    """Sample until the last three agree within 5 %, or most_seconds of samples have passed; their median."""
    times: list[float] = []
    while True:
        times.append(sample())
        last = times[-3:]
        settled = len(last) == 3 and max(last) <= 1.05 * min(last)
        if settled or (len(last) == 3 and sum(times) >= most_seconds):
            return median(last)
