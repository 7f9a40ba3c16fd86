"""Constants of the time model from published times, and what is told of families and cards that were left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from vitbench import gpu
from vitbench.devices import card
from vitbench.gpu import CONSTANTS, NAMES
from vitbench.validation.kernels import Kernels
from vitbench.validation.speeds import Speed, Table

USUAL_ERROR = 0.05  # of the log of a time; what is farther off pulls as its distance, not as its square
Array = np.ndarray


@dataclass(frozen=True)
class Measured:
    """The rows of a table that could be traced: of each its family, kernels and seconds.

    macs: of products, of the batch. outputs: elements that these give.
    """

    table: Table
    speeds: Sequence[Speed]
    families: Array
    kernels: Kernels
    seconds: Array
    macs: Array
    outputs: Array

    def predicted(self, constants: Mapping[str, float]) -> Array:
        """Seconds of each row."""
        return self.kernels.seconds(card(self.table.card), constants)


@dataclass(frozen=True)
class Model:
    """A way to tell times. start, low, high: of its parameters, all positive."""

    name: str
    start: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    tell: Callable[[Measured, Array], Array]

    def fit(self, tables: Sequence[Measured], kept: Sequence[Array]) -> Array:
        """Its parameters from the rows that are kept of each table; one at least has to be.

        A parameter that no row depends on stays where it starts.
        """
        if not len(self.start):
            return np.array([])

        def errors(logs: Array) -> Array:
            told = [self.tell(table, np.exp(logs)) / table.seconds for table in tables]
            every: Array = np.concatenate([np.log(ratio[rows]) for ratio, rows in zip(told, kept, strict=True)])
            known: Array = every[~np.isnan(every)]
            return known

        ends = tuple(np.log(np.array(end, float)) for end in (self.low, self.high))
        start = np.log(np.array(self.start, float))
        found = least_squares(errors, start, bounds=ends, loss="soft_l1", f_scale=USUAL_ERROR, x_scale=0.1).x
        for n, first in enumerate(start):
            low, high = (np.concatenate([found[:n], [end[n]], found[n + 1 :]]) for end in ends)
            if np.array_equal(errors(low), errors(high)):
                found[n] = first
        told: Array = np.exp(found)
        return told

    def without_family(self, table: Measured, others: Sequence[Measured] = ()) -> Array:
        """Seconds of the rows of a table, each family from all that are no such, of this table and the others.

        NaN where there is none to tell it from.
        """
        told, every = np.full(len(table.seconds), np.nan), (table, *others)
        for family in np.unique(table.families):
            kept = [one.families != family for one in every]
            if not len(self.start) or any(rows.any() for rows in kept):
                held = table.families == family
                told[held] = self.tell(table, self.fit(every, kept))[held]
        return told

    def of_others(self, table: Measured, others: Sequence[Measured]) -> Array | None:
        """Seconds of the rows of a table, from those of others alone; None where there are none and it has to fit."""
        if not others and len(self.start):
            return None
        return self.tell(table, self.fit(others, [np.ones(len(one.seconds), bool) for one in others]))


def named(parameters: Array) -> dict[str, float]:
    return dict(zip(NAMES, map(float, parameters), strict=True))


def _flops(table: Measured, parameters: Array) -> Array:
    share = parameters[0] if len(parameters) else 1
    return 2 * table.macs / (share * card(table.table.card).peak("float16"))


def _exact(table: Measured, parameters: Array) -> Array:
    return _linear(table, table.macs, table.outputs, parameters)


def _printed(table: Measured, parameters: Array) -> Array:
    """By the columns of the table itself, as its counter saw them; NaN where they hold nothing."""
    macs = np.array([(one.macs or np.nan) * one.batch for one in table.speeds])
    outputs = np.array([(one.activations or np.nan) * one.batch for one in table.speeds])
    return _linear(table, macs, outputs, parameters)


def _linear(table: Measured, macs: Array, outputs: Array, parameters: Array) -> Array:
    """In MACs and activations, as those who plan by FLOPs and activations do (Radosavovic 2020, section 3.3)."""
    scale = card(table.table.card)
    computing = 2 * macs / (parameters[0] * scale.peak("float16"))
    return np.asarray(computing + 2 * outputs / (parameters[1] * scale.bandwidth) + parameters[2])


OURS = Model(
    "kernel by kernel",
    [one.start for one in CONSTANTS],
    [one.low for one in CONSTANTS],
    [one.high for one in CONSTANTS],
    lambda table, parameters: table.predicted(named(parameters)),
)
DATASHEET = Model(
    "kernel by kernel, datasheet",
    [],
    [],
    [],
    lambda table, _: table.predicted(gpu.DATASHEET),
)
LINEAR = [0.8, 0.2, 1e-3], [0.001, 0.001, 1e-7], [100, 100, 1]
BASELINES = (
    Model("FLOPs over peak", [], [], [], _flops),
    Model("FLOPs, one constant", [0.5], [0.001], [10], _flops),
    Model("MACs and activations, printed", *LINEAR, _printed),
    Model("MACs and activations, exact", *LINEAR, _exact),
)


@dataclass(frozen=True)
class Score:
    """Of |predicted / measured - 1|: median and 90th percentile; rank: Spearman's correlation, None if all are
    alike.
    """

    rows: int
    median: float
    p90: float
    rank: float | None

    @classmethod
    def of(cls, told: Array, seconds: Array) -> Score | None:
        """told: NaN where it is not. None where nothing is."""
        told, seconds = told[~np.isnan(told)], seconds[~np.isnan(told)]
        if not len(told):
            return None
        errors = np.abs(told / seconds - 1)
        differ = len(np.unique(told)) > 1 < len(np.unique(seconds))
        rank = float(spearmanr(told, seconds)[0]) if differ else None
        return cls(len(told), float(np.median(errors)), float(np.quantile(errors, 0.9)), rank)
