"""python -m benchmarks.coverage: how often the intervals of vitbench/interval.py hold the truth, on simulated passes.

A pass has its own luck, shared by all that runs in it, and its samples scatter far less than passes do. Printed: the
share of runs whose 95 % interval holds the true median, and the share in which a true difference of 6 % is found, from
the end points of two intervals and from ratios pass by pass.
"""

from __future__ import annotations

import numpy as np

from vitbench.interval import estimate, ratio

RUNS = 400
LUCK = 0.08  # standard deviation of a pass's factor, as a logarithm
SCATTER = 0.01  # of the samples within a pass
SAMPLES = 20


def simulate(draw: np.random.Generator, luck: np.ndarray, median: float) -> list[list[float]]:
    """Samples of each pass of a case with that true median."""
    return [(median * factor * np.exp(draw.normal(0, SCATTER, SAMPLES))).tolist() for factor in luck]


def medians(passes: list[list[float]]) -> dict[int, float]:
    return {pass_: float(np.median(samples)) for pass_, samples in enumerate(passes)}


def shares(passes: int) -> tuple[float, float, float]:
    """Coverage; differences found from end points; differences found pass by pass."""
    draw = np.random.default_rng(passes)
    held = ends = paired = 0
    for run in range(RUNS):
        luck = np.exp(draw.normal(0, LUCK, passes))
        one, other = simulate(draw, luck, 1.0), simulate(draw, luck, 1.06)
        _, low, high = estimate(one, seed=run)
        held += low <= 1.0 <= high
        ends += estimate(other, seed=run + 1)[1] > high
        paired += ratio(medians(other), medians(one))[1] > 1.0
    return held / RUNS, ends / RUNS, paired / RUNS


if __name__ == "__main__":
    for count in (3, 5, 6, 8, 10):
        coverage, from_ends, pass_by_pass = shares(count)
        found = f"{from_ends:.0%} by end points, {pass_by_pass:.0%} pass by pass"
        print(f"{count:2} passes: the interval holds the truth in {coverage:.0%}; 6 % more is found in {found}")
