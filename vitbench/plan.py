"""What a run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitbench.case import Case


@dataclass(frozen=True)
class Plan:
    """What a run measures. cache: how samples find the device's caches. seconds: of samples, a case and pass."""

    profile: str
    sweeps: tuple[str, ...]
    device: str
    cache: str
    seconds: float
    seed: int
    cases: tuple[Case, ...]
    asked_by: tuple[tuple[str, ...], ...]  # of each case, the sweeps that ask for it

    def to_dict(self) -> dict[str, Any]:
        rest = {name: getattr(self, name) for name in ("profile", "device", "cache", "seconds", "seed")}
        asked = {case.id: list(sweeps) for case, sweeps in zip(self.cases, self.asked_by, strict=True)}
        return {**rest, "sweeps": list(self.sweeps), "cases": asked}
