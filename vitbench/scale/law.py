"""How the MACs of a model grow with its images: exact polynomials, and the sizes at which they hold.

With N tokens and n = S / pixels of them a side of an image of S pixels, every part is a polynomial in N where there is
one, else in n. It is fitted on as few sizes as its degree needs and must be met exactly at two more at least. It holds
at multiples of the period: sizes that windows and strides cut without a rest. NOT known is whether it holds beyond the
largest size that was tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, lcm

from vitbench.scale.points import PARTS, Point, Points
from vitbench.scale.polynomial import Exact, Polynomial, fit

KEYS, PIXELS = "keys of every softmax attention", "pixels of the image"
POSITIONS = {True: "positions of the grid", False: "positions of the first convolution"}  # on paper, counted
MOST = {"N": 2, "n": 5}  # highest power looked for
ANCHORS = (5, 8)  # multiples of the period that are tried: for powers of N, then for those of n


@dataclass(frozen=True)
class Tokens:
    """N = (S / pixels)^2 + prefix for images of S pixels a side. what: N is the number of these."""

    what: str
    pixels: Fraction
    prefix: int

    def side(self, image: Exact) -> Fraction:
        """n."""
        return image / self.pixels

    def count(self, image: Exact) -> Fraction:
        """N."""
        return self.side(image) ** 2 + self.prefix


@dataclass(frozen=True)
class Law:
    """parts: of linear, pairs and weights, each a polynomial in the variable, N or n.

    period: pixels; it holds at the multiples. base: those that were tried first, a multiple of the period. fitted,
    verified: sizes at which it was fitted and then met exactly, multiples of the period all.
    """

    tokens: Tokens
    variable: str
    parts: Mapping[str, Polynomial]
    base: int
    period: int
    fitted: tuple[int, ...]
    verified: tuple[int, ...]

    @property
    def total(self) -> Polynomial:
        return sum(self.parts.values(), Polynomial())

    def x(self, image: Exact) -> Fraction:
        return self.tokens.count(image) if self.variable == "N" else self.tokens.side(image)

    def macs(self, image: int) -> Fraction:
        """At any size, padding left out."""
        return self.total(self.x(image))

    def holds(self, point: Point) -> bool:
        x = self.x(point.image)
        return all(polynomial(x) == getattr(point, part) for part, polynomial in self.parts.items())


def law(points: Points) -> Law | None:
    """None where no polynomial is met exactly."""
    first = points.at(points.own)
    assert first is not None
    doubled = 1 << (points.own - 1).bit_length()  # where strides cut its own size with a rest
    for base in dict.fromkeys((points.own, doubled, _windowed(points, first))):
        for count in ANCHORS:
            tried = [points.at(n * base) for n in range(1, count + 1)]
            anchors = [point for point in tried if point]
            if (found := _fitted(anchors, base, points.on_paper)) is not None:
                return _with_period(points, found)
            if len(anchors) < count:
                break
    return None


def checked(points: Points, found: Law) -> Law | None:
    """After more sizes were counted: verified at all of them that are multiples of the period, else of the base."""
    for period in (found.period, found.base):
        whole = [point for point in points.found.values() if point.image % period == 0]
        if all(map(found.holds, whole)):
            sizes = sorted(point.image for point in whole if point.image not in found.fitted)
            return replace(found, period=period, verified=tuple(sizes))
    return None


def unit(points: Points, found: Law | None) -> int:
    """Pixels of which every size is a multiple that is cut into whole tokens, as far as is known."""
    side = found.tokens.pixels if found else Fraction(1)
    whole = side.denominator == 1 and points.own % side == 0
    return lcm(points.patch, side.numerator) if whole else points.patch


def _tokens(anchors: list[Point], on_paper: bool) -> Tokens:
    """What N is, at sizes at which nothing is padded."""
    for what, counts in (
        (KEYS, [point.keys for point in anchors]),
        (POSITIONS[on_paper], [point.grid for point in anchors]),
    ):
        squares = [(point.image**2, count) for point, count in zip(anchors, counts, strict=True) if count is not None]
        line = fit(squares, 1) if len(squares) == len(anchors) else None
        if line and line.degree == 1 and line.of_power(0).denominator == 1 and (side := _root(line.of_power(1))):
            return Tokens(what, 1 / side, int(line.of_power(0)))
    return Tokens(PIXELS, Fraction(1), 0)


def _root(square: Fraction) -> Fraction | None:
    """None where it is not rational."""
    root = Fraction(isqrt(square.numerator), isqrt(square.denominator)) if square > 0 else Fraction(0)
    return root if root and root**2 == square else None


def _fitted(anchors: list[Point], base: int, on_paper: bool) -> Law | None:
    rule = _tokens(anchors, on_paper)
    for variable, most in MOST.items():
        x = rule.count if variable == "N" else rule.side
        tried = {part: fit([(x(point.image), getattr(point, part)) for point in anchors], most) for part in PARTS}
        parts = {part: one for part, one in tried.items() if one is not None}
        if len(parts) == len(PARTS):
            split = max(one.degree for one in parts.values()) + 1
            sizes = [point.image for point in anchors]
            return Law(rule, variable, parts, base, base, tuple(sizes[:split]), tuple(sizes[split:]))
    return None


def _with_period(points: Points, found: Law) -> Law:
    """The shortest period, by trying what is left of it without each of its prime factors, one size each."""
    period, step, verified = found.period, unit(points, found), list(found.verified)
    for prime in (2, 3, 5, 7, 11, 13):
        while period % prime == 0 and (shorter := period // prime) % step == 0:
            point = points.at(found.period + shorter)
            if point is None or not found.holds(point):
                break
            verified.append(point.image)
            period = shorter
    return replace(found, period=period, verified=tuple(sorted(verified)))


def _windowed(points: Points, first: Point) -> int:
    """A size that its windows, as far as they are squares, cut without a rest; for a model whose own is padded."""
    sides = {isqrt(keys) for _, keys in first.attentions if isqrt(keys) ** 2 == keys}
    grid = points.own // points.patch
    return points.patch * lcm(*(side for side in sides if side < grid), 1)
