"""How far a figure can be trusted.

A process has its own luck (memory layout, neighbours), so samples of one process agree far better than processes do.
Estimates are therefore medians of the passes' medians, and intervals resample passes first, then their samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import nan
from typing import Any

import numpy as np
from scipy.stats import bootstrap, mannwhitneyu, quantile_test

SETTLED_PASSES = 6  # the fewest that have an exact 95 % interval of a median: all lie on one side in 1 of 32 runs
RESAMPLES = 1000
CONFIDENCE = 0.95

Interval = tuple[float, float, float]  # the estimate, and the lower and upper end


def estimate(passes: Sequence[Sequence[float]], seed: int = 0) -> Interval:
    """Median of the passes' medians, and the ends of its 95 % bootstrap interval.

    passes: samples of each pass, none empty. Of a single pass the interval is of its samples alone.
    """
    draw = np.random.default_rng(seed)
    medians = np.array([np.median(samples) for samples in passes])
    resampled = np.stack([_medians(np.asarray(samples), draw) for samples in passes], axis=1)  # (RESAMPLES, passes)
    middle = float(np.median(medians))
    if len(passes) == 1 or np.ptp(resampled) == 0:  # the bootstrap below wants two, and some difference
        low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    else:

        def median_of(chosen: np.ndarray, axis: int) -> Any:  # of passes; each with its samples drawn anew
            again = draw.integers(RESAMPLES, size=chosen.shape)
            return np.median(resampled[again, chosen], axis=axis)

        indices = (np.arange(len(passes)),)
        found = bootstrap(
            indices, median_of, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, method="percentile", rng=draw
        )
        low, high = found.confidence_interval
    return middle, min(float(low), middle), max(float(high), middle)


def half_width(interval: Interval) -> float:
    """Of the interval, as a share of the estimate."""
    middle, low, high = interval
    return (high - low) / 2 / middle


def ratio(above: Mapping[int, float], below: Mapping[int, float]) -> Interval:
    """above / below: median over the passes that hold both, and the ends of its exact 95 % interval (sign test).

    above, below: median of each pass. Within a pass both ran in one process, so what slowed that process cancels.
    NaN where there is nothing to say: the ends from fewer than 6 passes, all three if no pass holds both.
    """
    ratios = [above[pass_] / below[pass_] for pass_ in above.keys() & below.keys()]
    if not ratios:
        return nan, nan, nan
    ends: Any = quantile_test(np.array(ratios), p=0.5).confidence_interval(CONFIDENCE)
    return float(np.median(ratios)), float(ends.low), float(ends.high)


def unpaired_ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The same of medians from different processes: the ratios that an exact Mann-Whitney test does not reject.

    The estimate is the median of all ratios (Hodges and Lehmann 1963). NaN as in ratio: the ends where either side has
    fewer than 6 passes, all three where one has none.
    """
    if not above or not below:
        return nan, nan, nan
    shifts = np.sort(np.subtract.outer(np.log(above), np.log(below)).ravel())
    middle = float(np.exp(np.median(shifts)))
    if min(len(above), len(below)) < SETTLED_PASSES:
        return middle, nan, nan
    cut = _rejected(len(above), len(below))
    return middle, float(np.exp(shifts[cut - 1])), float(np.exp(shifts[-cut]))


@cache
def _rejected(n: int, m: int) -> int:
    """How many of the n x m sorted shifts a Mann-Whitney test at 95 % leaves outside, at each end."""
    one, other = np.arange(n) * m + np.linspace(0, 0.5, n), np.arange(m) * 1.0  # no two shifts are equal
    shifts = np.sort(np.subtract.outer(one, other).ravel())
    between = (shifts[1:] + shifts[:-1]) / 2
    outside = [shifts[0] - 1, *between]
    kept = [mannwhitneyu(one - shift, other, method="exact").pvalue > 1 - CONFIDENCE for shift in outside]
    return kept.index(True)


def _medians(samples: np.ndarray[tuple[int], np.dtype[np.float64]], draw: np.random.Generator) -> np.ndarray:
    """(RESAMPLES,): medians of samples drawn with replacement."""
    return np.asarray(np.median(draw.choice(samples, size=(RESAMPLES, len(samples))), axis=1))
