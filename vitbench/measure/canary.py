"""A fixed matrix product, timed around every case: how fast the machine itself is at that moment."""

from __future__ import annotations

from functools import cache
from statistics import median
from typing import Any

import torch

from vitbench.measure.clock import timer

SIDE = {"cpu": 768, "cuda": 4096}  # of the square float32 product; a few milliseconds
REPEATS = 3
DRIFT = 0.10  # of the canary during a case, above which that pass of the case is disturbed


def canary(device: str) -> float:
    """Seconds of the product, the median of three."""
    call, now = _product(device), timer(device)
    times = []
    for _ in range(REPEATS):
        start = now()
        call()
        times.append(float(now() - start))
    return round(median(times), 9)


def disturbed(before: float, after: float) -> str | None:
    """Why samples taken between two canaries are not to be used; None if the machine kept its speed."""
    drift = max(before, after) / min(before, after) - 1
    if drift <= DRIFT:
        return None
    times = f"{before * 1e3:.3g} ms before and {after * 1e3:.3g} ms after"
    return f"the machine changed its speed while this was measured: a fixed product took {times} it"


@cache
def _product(device: str) -> Any:
    """The call, warmed up."""
    draw = torch.Generator().manual_seed(0)
    a = torch.randn(SIDE[device], SIDE[device], generator=draw).to(device)
    out = torch.empty_like(a)

    def call() -> None:
        torch.mm(a, a, out=out)

    for _ in range(REPEATS):
        call()
    return call
