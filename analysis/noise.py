"""How far identical cases come apart in a run: its noise floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd

from analysis.study import WORK, Row
from vitbench.interval import Interval, ratio, unpaired_ratio

QUANTILE = 0.95

Compare = Callable[[Row, Row], Interval]  # the second's time over the first's


@dataclass(frozen=True)
class Measure:
    """A way to compare the times of two cases.

    paired: pass by pass, for cases of one run. adjusted: each time is divided by the canary around it.
    """

    paired: bool
    adjusted: bool

    def __call__(self, first: Row, second: Row) -> Interval:
        above, below = self._by_pass(second), self._by_pass(first)
        return ratio(above, below) if self.paired else unpaired_ratio(list(above.values()), list(below.values()))

    def _by_pass(self, row: Row) -> dict[int, float]:
        if not self.adjusted:
            return dict(row["by_pass"])
        return {p: s / row["canary_by_pass"][p] for p, s in row["by_pass"].items() if p in row["canary_by_pass"]}


def twins(cases: pd.DataFrame) -> Iterator[tuple[Row, Row]]:
    """Pairs of identical cases that both have a time."""
    timed = cases[cases["seconds"].notna()]
    for _, group in timed.groupby(["backend", *WORK, "device"], sort=False):
        rows = [row for _, row in group.sort_values("copy").iterrows()]
        yield from zip(rows[::2], rows[1::2], strict=False)


def apart(interval: Interval) -> float:
    """How far the ratio is from 1, whichever is the larger: 0.05 for 1.05 and for 1 / 1.05."""
    return float(np.exp(abs(np.log(interval[0]))) - 1)


def quieter(cases: pd.DataFrame) -> tuple[Measure, float | None]:
    """Of the two ways to compare within a run, that in which identical cases come less far apart; and how far."""
    ways = [Measure(paired=True, adjusted=adjusted) for adjusted in (False, True)]
    floors = [(way, noise_floor(cases, way)) for way in ways]
    return min(floors, key=lambda found: inf if found[1] is None else found[1])


def noise_floor(cases: pd.DataFrame, measure: Compare) -> float | None:
    """What 95 % of the pairs of identical cases stay within (of few pairs, all); None where no pair has six passes."""
    found = [apart(interval) for one, other in twins(cases) if np.isfinite((interval := measure(one, other))[1])]
    return float(np.quantile(found, QUANTILE, method="higher")) if found else None
