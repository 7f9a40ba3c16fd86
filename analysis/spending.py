"""What the wall time of a run went into."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from vitbench.folder import read_records, read_stages

# Stage of a record or of the supervisor -> what it is called. Measured calls first.
STAGES = {
    "samples": "samples",
    "warm_up": "warm-up",
    "first_call": "first calls",
    "canary": "canaries",
    "start": "starting processes (imports)",
    "build": "building cases",
    "compile": "compiling",
    "check": "checks against float64",
    "count": "counting",
    "memory": "memory probes",
    "kernels": "kernel names",
    "energy": "energy",
    "peaks": "the machine's peaks",
    "environment": "the environment",
    "report": "the report",
}
MEASURED = ("samples", "warm_up", "first_call")  # a first call warms up what the next ones find


@dataclass(frozen=True)
class Spending:
    """total: seconds of wall time that the supervisor booked. stages: seconds by the names of STAGES and "other".

    A supervisor that was killed booked nothing for its last pass; where its records add up to more than was booked, the
    total is what they add up to.
    """

    total: float
    stages: dict[str, float]

    @classmethod
    def of(cls, folder: Path) -> Spending:
        stages: dict[str, float] = defaultdict(float)
        for line in read_records(folder):
            for stage, seconds in (line.get("spent") or {}).items():
                stages[STAGES.get(stage, stage)] += seconds
        booked = read_stages(folder)
        for stage in ("peaks", "environment", "report"):
            if stage in booked:
                stages[STAGES[stage]] += booked[stage]
        total = max(sum(booked.values()), sum(stages.values()))
        return cls(total, {**stages, "other": total - sum(stages.values())})

    @property
    def share(self) -> float | None:
        """Of measured and warm-up calls in the wall time; None where nothing was booked."""
        measured = sum(self.stages.get(STAGES[stage], 0.0) for stage in MEASURED)
        return measured / self.total if self.total else None

    @property
    def sentence(self) -> str:
        if self.share is None:
            return "What the wall time went into is not known of this run."
        parts = sorted(self.stages.items(), key=lambda item: -item[1])
        said = ", ".join(f"{name} {seconds / self.total:.1%}" for name, seconds in parts if seconds / self.total > 5e-4)
        return f"{self.share:.0%} of {self.total:.0f} s were spent in measured or warm-up calls: {said}."
