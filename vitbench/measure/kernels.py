"""Names of what really ran, from one profiled call of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SMALLEST_SHARE = 0.01  # of the call's time; below it a name is left out


def ran(call: Callable[[], Any], device: str) -> list[str]:
    """Operators (CPU) or kernels (CUDA) that took at least 1 % of the time by themselves, longest first."""
    kind = {"cpu": torch.profiler.ProfilerActivity.CPU, "cuda": torch.profiler.ProfilerActivity.CUDA}[device]
    with torch.profiler.profile(activities=[kind], acc_events=True) as profile:
        call()
        if device == "cuda":
            torch.cuda.synchronize()
    seconds = {event.key: getattr(event, f"self_{_clock(device)}_time_total") for event in profile.key_averages()}
    total = sum(seconds.values())
    longest = sorted(seconds, key=lambda name: -seconds[name])
    return [name for name in longest if seconds[name] > 0 and seconds[name] >= SMALLEST_SHARE * total]


def _clock(device: str) -> str:
    return "cpu" if device == "cpu" else "device"
