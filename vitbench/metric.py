"""The contract of a metric: one number derived from the row of a case, never measured by itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from vitbench.registry import Registry

Row = Mapping[str, Any]  # by column of analysis.load.COLUMNS; what was not measured is None or NaN


class Metric(ABC):
    """name: the column, its SI unit in it where it has one. description: one line for the glossary, with the unit."""

    name: str
    description: str

    @abstractmethod
    def value(self, row: Row) -> float | None:
        """The number of that row; None, never 0, where a column that it needs was not measured. Never raises."""


def figure(row: Row, column: str) -> float | None:
    """What the column holds as a finite number; None where it is missing or holds none."""
    try:
        number = float(row[column])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def quotient(above: float | None, below: float | None) -> float | None:
    """above / below; None where either is unknown or below is 0."""
    return above / below if above is not None and below else None


metrics: Registry[Metric] = Registry("metric", "vitbench.metrics")
