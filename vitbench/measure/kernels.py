"""Names of what really ran, from one profiled call of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

SMALLEST_SHARE = 0.01  # of the call's time; below it a name is left out
_OWN_TIME = {"cpu": "self_cpu_time_total", "cuda": "self_device_time_total"}  # of a profiled event


class Ran(NamedTuple):
    """names: operators (CPU) or kernels (CUDA) that took at least 1 % of the time by themselves, longest first.
    operators: every operator that the host dispatched.
    """

    names: list[str]
    operators: list[str]


def ran(call: Callable[[], Any], device: str) -> Ran:
    """What one call ran."""
    activity = torch.profiler.ProfilerActivity
    kinds = {"cpu": [activity.CPU], "cuda": [activity.CPU, activity.CUDA]}[device]
    with torch.profiler.profile(activities=kinds, acc_events=True) as profile:
        call()
        if device == "cuda":
            torch.cuda.synchronize()
    events = profile.key_averages()
    seconds = {event.key: getattr(event, _OWN_TIME[device]) for event in events if _runs_on(event, device)}
    total = sum(seconds.values())
    longest = sorted(seconds, key=lambda name: -seconds[name])
    names = [name for name in longest if seconds[name] > 0 and seconds[name] >= SMALLEST_SHARE * total]
    return Ran(names, [event.key for event in events])


def _runs_on(event: Any, device: str) -> bool:
    """With CUDA traced too, operators of the host and spans that have names stand beside the kernels."""
    return event.device_type.name.lower() == device and not (device == "cuda" and event.is_user_annotation)
