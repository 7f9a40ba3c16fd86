"""The order of a run's cases, how long they are predicted to take, and so what is left of the run.

The predictions are those of this machine's newest calibration: of the cases that it holds its own, of others the closed
forms over its constants, which is enough for a time left. Where nothing is known of a case it counts as the others do
in the mean; where nothing is known of any there is no time left but that of the records so far.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from vitbench import cpu
from vitbench.backend import backends
from vitbench.calibrate.document import Calibration, constants_of, newest_of, predicted_in
from vitbench.case import Case
from vitbench.refusal import Refusal
from vitbench.shape import Shape

START = 5.0  # seconds of a pass before its first case: a process, its imports
# Of a case in a pass, and in its first, in which it is checked, counted and probed too: seconds beside its calls, and
# calls. As fitted to the records of results/reference.
VISIT, FIRST_VISIT = 0.2, 0.3
CALLS, FIRST_CALLS = 8, 16


def predicted(cases: Iterable[Case], results: Path, environment: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of one call by case id; nothing for a case that cannot be predicted. Raises nothing.

    results: where runs lie. environment: as of `measure.environment`.
    """
    with suppress(Refusal):
        calibration = newest_of(results, environment)
        if calibration is not None:
            return _predicted(cases, calibration)
    return {}


def _predicted(cases: Iterable[Case], calibration: Calibration) -> dict[str, float]:
    constants, traced = constants_of(calibration), predicted_in(calibration)
    found = {case.id: on_paper(case, constants) for case in cases if _like(case)}
    return {**found, **{id_: seconds for id_, seconds in traced.items() if id_ in found}}


def _like(case: Case) -> bool:
    """Whether it is of the kind that a calibration is made of."""
    return case.device == "cpu" and case.dtype == cpu.DTYPE and not backends[case.backend].compiled


def on_paper(case: Case, constants: cpu.Constants) -> float:
    """Seconds of one call by its closed forms: products, and each elementwise output read and written once."""
    cost = case.cost()
    moved = 2 * case.itemsize * float(cost.elementwise) + case.itemsize * float(cost.moved_elements)
    return float(cost.total_macs) / constants["macs_per_second"] + moved / constants["cached_bytes_per_second"]


def shuffled(cases: list[Case], seed: int, seconds: Mapping[str, float] | None = None) -> list[Case]:
    """In random order, but cases of the same shape, dtype and mode next to one another, in random order too.

    They will be compared, and what changes from minute to minute is then the same for them. seconds: predicted, by case
    id: where they are known such groups come in their order, the cheapest first.
    """
    draw, groups = random.Random(seed), dict[tuple[Shape, str, str], list[Case]]()
    for case in cases:
        groups.setdefault((case.shape, case.dtype, case.mode), []).append(case)
    order = list(groups.values())
    draw.shuffle(order)
    for group in order:
        draw.shuffle(group)
    if seconds:
        order.sort(key=lambda group: sum(seconds.get(case.id, 0.0) for case in group))
    return [case for group in order for case in group]


@dataclass
class Pace:
    """Of one supervisor. seconds: of a call, predicted, by case id. done: predicted seconds of what was done so far."""

    seconds: Mapping[str, float]
    done: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def visits(self, cases: Iterable[Case], first: bool) -> float:
        """Predicted seconds of the cases in one pass, its start apart."""
        mean = fmean(self.seconds.values()) if self.seconds else 0.0
        visit, calls = (FIRST_VISIT, FIRST_CALLS) if first else (VISIT, CALLS)
        return sum(visit + calls * self.seconds.get(case.id, mean) for case in cases)

    def left(self, here: float, remaining: float) -> float | None:
        """Seconds, at the pace so far; as predicted until something is done. here: predicted seconds of what this
        worker has done. remaining: of what is to come. None where nothing was predicted.
        """
        done = self.done + here
        pace = (time.monotonic() - self.began) / done if done else 1.0
        return remaining * pace if self.seconds else None
