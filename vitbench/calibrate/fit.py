"""Constants of a CPU from measured programs, and how well they tell the times of programs that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from vitbench.cpu import CONSTANTS, NAMES, Constants, prices

Array = np.ndarray
HALVES = 20  # times that the programs are parted, at random
USUAL_ERROR = 0.1  # of the log of a time; what is farther off pulls as its distance, not as its square
AT_END = 1e-3  # of the log of a value, within which it is at an end of its range
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def fit(demands: Array, seconds: Array) -> dict[str, float]:
    """The constants within their ranges that come nearest. demands: (cases, constants), as of cpu.demand."""

    def log_errors(logs: Array) -> Any:
        return np.log(predicted(demands, _named(logs)) / seconds)

    start, low, high = (np.log([getattr(one, name) for one in CONSTANTS]) for name in ("start", "low", "high"))
    found = least_squares(log_errors, start, bounds=(low, high), loss="soft_l1", f_scale=USUAL_ERROR)
    return _named(found.x)


def _named(logs: Array) -> dict[str, float]:
    return dict(zip(NAMES, np.exp(logs).tolist(), strict=True))


def predicted(demands: Array, constants: Constants) -> Array:
    """Seconds of each case."""
    return np.asarray(demands @ np.array(prices(constants)))


def at_an_end(constants: Constants) -> dict[str, bool]:
    """Whether each constant ran into an end of its range: the programs do not tell it, or the model is wrong."""
    return {
        one.name: bool(np.min(np.abs(np.log([constants[one.name] / one.low, constants[one.name] / one.high]))) < AT_END)
        for one in CONSTANTS
    }


@dataclass(frozen=True)
class HeldOut:
    """log_errors: (fits, cases), log(measured / predicted) of what was held out; NaN where it was fitted to."""

    log_errors: Array

    def errors(self, cases: Array | None = None) -> tuple[float, float] | None:
        """Median and 90th percentile of |predicted / measured - 1|, of all cases or of those; None of none."""
        logs = self.log_errors if cases is None else self.log_errors[:, cases]
        shares = np.abs(np.expm1(-logs[~np.isnan(logs)]))
        return (float(np.median(shares)), float(np.quantile(shares, 0.9))) if shares.size else None

    def quantiles(self) -> dict[str, float]:
        """Of log(measured / predicted)."""
        found = np.nanquantile(self.log_errors, QUANTILES)
        return {str(share): float(value) for share, value in zip(QUANTILES, found, strict=True)}


def by_halves(demands: Array, seconds: Array, programs: Sequence[int], halves: int = HALVES, seed: int = 0) -> HeldOut:
    """Each half of the programs from the other, again and again.

    programs: of each case, its number; what is the same program, measured again, is never on both sides.
    """
    draw, of = np.random.default_rng(seed), np.asarray(programs)
    distinct, rows = np.unique(of), []
    for _ in range(halves):
        half = np.isin(of, draw.permutation(distinct)[: len(distinct) // 2])
        rows += [_told(demands, seconds, fitted, ~fitted) for fitted in (half, ~half)]
    return HeldOut(np.array(rows))


def by_sweeps(
    demands: Array, seconds: Array, programs: Sequence[int], sweeps: Sequence[Sequence[str]], least: int
) -> HeldOut:
    """Each case from those that share neither a sweep nor a program with it.

    sweeps: of each case. least: programs to fit to; where fewer are left nothing is told.
    """
    of, rows = np.asarray(programs), []
    for some in sorted({tuple(one) for one in sweeps}):
        held = np.array([tuple(one) == some for one in sweeps])
        apart = np.array([not set(one) & set(some) for one in sweeps]) & ~np.isin(of, of[held])
        if len(np.unique(of[apart])) >= least:
            rows.append(_told(demands, seconds, apart, held))
    return HeldOut(np.array(rows).reshape(-1, len(of)))


def _told(demands: Array, seconds: Array, fitted: Array, held: Array) -> Array:
    """A row of log_errors."""
    constants = fit(demands[fitted], seconds[fitted])
    return np.where(held, np.log(seconds / predicted(demands, constants)), np.nan)
