"""How far a figure can be trusted.

A process has its own luck (memory layout, neighbours), so samples of one process agree far better than processes do.
Estimates are therefore medians of the passes' medians, and intervals resample passes first, then their samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np

SETTLED_PASSES = 5  # of 3 processes the 95 % interval holds the true median in 77 % (benchmarks/coverage.py)
RESAMPLES = 1000
CONFIDENCE = 0.95


def estimate(passes: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float, float]:
    """Median of the passes' medians, and the ends of its 95 % bootstrap interval.

    passes: samples of each pass, none empty.
    """
    draw = np.random.default_rng(seed)
    resampled = np.stack([_medians(np.asarray(samples), draw) for samples in passes], axis=1)  # (RESAMPLES, passes)
    chosen = draw.integers(len(passes), size=resampled.shape)
    medians = np.median(np.take_along_axis(resampled, chosen, axis=1), axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    middle = float(np.median([np.median(samples) for samples in passes]))
    return middle, min(float(low), middle), max(float(high), middle)


def ratio(above: Mapping[int, float], below: Mapping[int, float]) -> tuple[float, float, float]:
    """above / below, and the ends of its 95 % bootstrap interval over the passes that hold both.

    above, below: median of each pass. Within a pass both ran in one process, so what slowed that process cancels.
    NaN where there is nothing to say: the ends from a single pass, all three if no pass holds both.
    """
    shared = sorted(above.keys() & below.keys())
    if not shared:
        return nan, nan, nan
    middle, low, high = estimate([[above[pass_] / below[pass_]] for pass_ in shared])
    return (middle, low, high) if len(shared) > 1 else (middle, nan, nan)


def _medians(samples: np.ndarray[tuple[int], np.dtype[np.float64]], draw: np.random.Generator) -> np.ndarray:
    """(RESAMPLES,): medians of samples drawn with replacement."""
    return np.asarray(np.median(draw.choice(samples, size=(RESAMPLES, len(samples))), axis=1))
