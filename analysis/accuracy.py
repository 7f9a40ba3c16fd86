"""accuracy.json of a run, as `python -m benchmarks.accuracy` wrote it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean, median

from vitbench.interval import Interval, estimate, ratio
from vitbench.refusal import Refusal

FILE, SCHEMA = "accuracy.json", 1
AGAIN = "write it again: python -m benchmarks.accuracy"


@dataclass(frozen=True)
class Trained:
    """A row of the file, as benchmarks.accuracy describes it. accuracies: by seed. seconds: of each round's steps."""

    name: str
    kind: str
    patch: int
    positions: str
    tokens: int
    parameters: int
    macs: int
    training_macs: int
    batch: int
    accuracies: list[float]
    seconds: list[list[float]]

    @property
    def accuracy(self) -> Interval:
        return spread(self.accuracies)

    @property
    def step(self) -> Interval:
        """Seconds."""
        return estimate(self.seconds)

    def points_above(self, other: Trained) -> Interval:
        """Percentage points of accuracy."""
        return spread([100 * (a - b) for a, b in zip(self.accuracies, other.accuracies, strict=True)])

    def times(self, other: Trained) -> Interval:
        """Seconds a step over those of the other, round by round."""
        own, others = (dict(enumerate(map(median, row.seconds))) for row in (self, other))
        return ratio(own, others)


def read(path: Path) -> tuple[list[Trained], int, str]:
    """Rows, images held out, and the name of what trained. Raises Refusal for what is not such a file."""
    try:
        content = json.loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            raise Refusal(f"{path} has schema {content['schema']}; expected {SCHEMA}: {AGAIN}")
        names = [field.name for field in fields(Trained)]
        rows = [Trained(**{name: row[name] for name in names}) for row in content["rows"]]
        _check(rows, len(content["training"]["seeds"]))
        return sorted(rows, key=lambda row: row.macs), int(content["data"]["test"]), content["environment"]["cpu"]
    except Refusal:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(f"{path} is damaged; {AGAIN}") from None


def _check(rows: Sequence[Trained], seeds: int) -> None:
    """Raises ValueError for figures that cannot be."""
    for row in rows:
        counts = (row.patch, row.tokens, row.parameters, row.macs, row.training_macs, row.batch)
        least = min(seconds for taken in row.seconds for seconds in taken)
        right = len(row.accuracies) == seeds and all(0 <= accuracy <= 1 for accuracy in row.accuracies)
        if not (right and all(row.seconds) and least > 0 and min(counts) > 0):
            raise ValueError(row.name)
    if not (rows and seeds):
        raise ValueError("nothing was trained")


def spread(values: Sequence[float]) -> Interval:
    return fmean(values), min(values), max(values)
