"""Peak memory of one call above what was held before it, in a pass of its own, never while timing.

On the CPU: the running sum of the allocator's events as torch's profiler sees them. This is memory asked
of torch's allocator; scratch space that a library (MKL, oneDNN) takes by itself is NOT in it.
On CUDA: torch's peak of allocated bytes, which rounds each tensor up to 512 bytes; cuBLAS's workspace is in it
when this call is the first to need it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import psutil
import torch


def peak_bytes(call: Callable[[], Any], device: str) -> int:
    """Most bytes held at once during the call, above those held before; what it returns included."""
    return {"cpu": _cpu_peak, "cuda": _cuda_peak}[device](call)


def free_bytes(device: str) -> int:
    """Bytes that can still be taken on the device."""
    if device == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0])
    return int(psutil.virtual_memory().available)


def _cpu_peak(call: Callable[[], Any]) -> int:
    return max(accumulate(allocations(call)), default=0)


def allocations(call: Callable[[], Any]) -> list[int]:
    """Bytes of each allocation (positive) and release (negative) of the CPU allocator during the call, in order."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True, acc_events=True) as profile:
        result = call()
    events = profile.profiler.kineto_results.events()
    memory = [event for event in events if event.name() == "[memory]" and event.device_type().name == "CPU"]
    del result
    return [event.nbytes() for event in sorted(memory, key=lambda event: event.start_ns())]


def _cuda_peak(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call()
    torch.cuda.synchronize()
    del result
    return torch.cuda.max_memory_allocated() - before
