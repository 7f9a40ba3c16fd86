"""Faster, slower, same or inconclusive, from the interval of a ratio."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from vitbench.interval import SETTLED_PASSES, Interval

MARGIN = 0.02  # of equivalence: what is surely within it is the same
WORDS = ("slower", "faster", "same", "inconclusive")


class Verdict(NamedTuple):
    """word: one of WORDS. reason: one sentence."""

    word: str
    reason: str


def verdict(interval: Interval, margin: float, floor: float | None) -> Verdict:
    """interval: the second's time over the first's. floor: the run's noise floor, None where it is not known.

    slower: the whole interval is above 1, and the ratio is above the margin and the floor; faster likewise. same: the
    whole interval is within the margin, and the margin is no smaller than the floor.
    """
    ratio, low, high = interval
    if isnan(ratio):
        return Verdict("inconclusive", "no pass holds both")
    if isnan(low) or isnan(high):
        return Verdict("inconclusive", f"fewer than {SETTLED_PASSES} passes")
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        return _within(margin, floor)
    beyond = max(margin, floor or 0.0)
    if low > 1 or high < 1:
        if max(ratio, 1 / ratio) <= 1 + beyond:
            return Verdict("inconclusive", f"a difference of no more than {beyond:.1%}, the margin or the noise floor")
        return Verdict("slower" if low > 1 else "faster", "the whole interval is on that side of 1")
    return Verdict("inconclusive", "the interval holds 1, and is wider than the margin")


def _within(margin: float, floor: float | None) -> Verdict:
    if floor is None:
        return Verdict("inconclusive", "within the margin, but this run holds no identical cases to tell its noise")
    if floor > margin:
        return Verdict("inconclusive", f"within the margin, but identical cases came {floor:.1%} apart")
    return Verdict("same", "the whole interval is within the margin")
