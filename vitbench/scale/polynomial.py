"""Polynomials with exact coefficients: through points, held against further points, and where they rise above 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Exact = int | Fraction
SPARE = 2  # points at least that a claimed polynomial meets beside those that it was fitted on


@dataclass(frozen=True)
class Polynomial:
    """coefficients: of x^0, x^1 ...; the last is not 0, and 0 itself has none."""

    coefficients: tuple[Fraction, ...] = ()

    @property
    def degree(self) -> int:
        """0 for every constant."""
        return max(len(self.coefficients) - 1, 0)

    def __call__(self, x: Exact) -> Fraction:
        value = Fraction(0)
        for coefficient in reversed(self.coefficients):
            value = value * x + coefficient
        return value

    def __add__(self, other: Polynomial) -> Polynomial:
        size = max(len(self.coefficients), len(other.coefficients))
        return polynomial([self.of_power(power) + other.of_power(power) for power in range(size)])

    def times(self, factor: Exact) -> Polynomial:
        return polynomial([factor * coefficient for coefficient in self.coefficients])

    def of_power(self, power: int) -> Fraction:
        """The coefficient of x^power."""
        return self.coefficients[power] if power < len(self.coefficients) else Fraction(0)

    def written(self, x: str) -> str:
        """18,432 N^2 + 85,523,712 N + 178,176, highest power first."""
        parts = []
        for power in range(len(self.coefficients) - 1, -1, -1):
            if coefficient := self.coefficients[power]:
                factor = {0: "", 1: f" {x}"}.get(power, f" {x}^{power}")
                parts.append(f"{'- ' if coefficient < 0 else '+ '}{told(abs(coefficient))}{factor}")
        text = " ".join(parts).removeprefix("+ ")
        return text or "0"


def told(value: Exact) -> str:
    """1,234 or 1,234/7."""
    return f"{value.numerator:,}" + (f"/{value.denominator:,}" if value.denominator > 1 else "")


def polynomial(coefficients: Sequence[Exact]) -> Polynomial:
    """Of x^0, x^1 ...; zeros at the end are left out."""
    size = max((power + 1 for power, coefficient in enumerate(coefficients) if coefficient), default=0)
    return Polynomial(tuple(map(Fraction, coefficients[:size])))


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    found = [Fraction(0)] * (len(one.coefficients) + len(other.coefficients))
    for i, a in enumerate(one.coefficients):
        for j, b in enumerate(other.coefficients):
            found[i + j] += a * b
    return polynomial(found)


def through(points: Sequence[tuple[Exact, Exact]]) -> Polynomial:
    """The one of least degree through all points, of different x (Newton's divided differences)."""
    found, vanishing = Polynomial(), polynomial([1])  # vanishing: 0 at every x so far
    for x, y in points:
        found = found + vanishing.times((y - found(x)) / vanishing(x))
        vanishing = _product(vanishing, polynomial([-x, 1]))
    return found


def fit(points: Sequence[tuple[Exact, Exact]], most: int) -> Polynomial | None:
    """The one of least degree, at most that, fitted on the first points and met by all others, SPARE of them at least.

    None where there is none, exactly.
    """
    for degree in range(min(most, len(points) - 1 - SPARE) + 1):
        found = through(points[: degree + 1])
        if all(found(x) == y for x, y in points[degree + 1 :]):
            return found
    return None


def rises(f: Polynomial, above: Exact) -> tuple[str, float] | None:
    """The least x > above at which f comes from below 0 to 0 and above: as an exact expression, and about.

    None where it does not.
    """
    import sympy

    if not f.degree:
        return None
    x = sympy.Symbol("x")
    rational = [sympy.Rational(one.numerator, one.denominator) for one in reversed(f.coefficients)]
    roots = sorted(set(sympy.Poly(rational, x, domain="QQ").real_roots()), key=lambda root: root.evalf(50))
    bounds = [Fraction(str(root.evalf(50))) for root in roots]
    for n, (root, at) in enumerate(zip(roots, bounds, strict=True)):
        before = bounds[n - 1] if n else at - 2
        after = bounds[n + 1] if n + 1 < len(bounds) else at + 2
        if at > above and f((at + before) / 2) < 0 < f((at + after) / 2):
            radical = not isinstance(root, sympy.polys.rootoftools.ComplexRootOf)
            return str(root) if radical else f"root {float(at):.6f} of {f.written('x')}", float(at)
    return None
