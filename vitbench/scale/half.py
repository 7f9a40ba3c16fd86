"""Where products of data with data become half of all MACs: an exact root of the law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from vitbench.scale.law import Law, unit
from vitbench.scale.points import Points
from vitbench.scale.polynomial import rises


@dataclass(frozen=True)
class Half:
    """Where pairs are half of all MACs by the law.

    limit: the share that pairs tend to as images grow. at: the exact value of the law's variable there; x: about;
    image: pixels a side where they are half, the next multiple of a token's side or, where the model refuses it or they
    are not yet half there, of the period. None, all three: they never become half. from_the_first: they are half at
    the smallest images.
    """

    limit: Fraction
    from_the_first: bool = False
    at: str | None = None
    x: float | None = None
    image: int | None = None


def half(points: Points, found: Law) -> Half | None:
    """None where there are no products."""
    pairs, total = found.parts["pairs"], found.total
    if not total.coefficients:
        return None
    limit = pairs.of_power(total.degree) / total.coefficients[-1]
    surplus = pairs.times(2) + total.times(-1)
    least = found.x(found.period)
    if surplus(least) >= 0:
        return Half(limit, from_the_first=True)
    root = rises(surplus, least)
    if root is None:
        return Half(limit)
    at, x = root
    side = found.tokens.pixels * Fraction((x - found.tokens.prefix) ** 0.5 if found.variable == "N" else x)
    step, period = unit(points, found), found.period
    point = points.at(ceil(side / step) * step) if step != period else None
    if point and 2 * point.pairs >= point.macs:
        return Half(limit, False, at, x, point.image)
    image = max(int(side / period) - 1, 1) * period
    while surplus(found.x(image)) < 0:
        image += period
    return Half(limit, False, at, x, image)
