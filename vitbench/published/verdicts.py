"""Which convention the numbers of a table follow, and which of them are wrong, with the likely reason.

A number is right where it is the exact one under the table's convention, rounded to the last digit that was printed.
The convention is the one under which most rows are right, those included that only lack products which some tool passes
over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median
from typing import Literal

from vitbench.published.counts import Recount
from vitbench.published.table import Image, Row, printed_steps

Count = Callable[[Recount], int]
Pairs = Sequence[tuple[Row, Recount]]


@dataclass(frozen=True)
class Convention:
    """What a column of counts holds. of: the number that belongs there for a recount, in units of one."""

    name: str
    line: str
    of: Count


CONVENTIONS = (  # the simplest first: it is taken where several fit as many rows
    Convention("MACs", "multiply-accumulates", lambda one: one.macs),
    Convention("FLOPs", "two a MAC", lambda one: 2 * one.macs),
    Convention("MACs + norms", "what fvcore counts, 5 an element of a LayerNorm included", lambda n: n.macs + n.norms),
    Convention("FLOPs + norms", "two for each of fvcore's MACs + norms", lambda one: 2 * (one.macs + one.norms)),
    Convention("MACs - einsum", "DeepSpeed's MACs, none in an einsum", lambda one: one.macs - one.einsum),
)
LOST: Mapping[str, Count] = {
    "the fused attention products are missing": lambda one: one.fused,
    "the attention products are missing": lambda one: one.attention,
    "the convolutions with padding='same' are missing": lambda one: one.worded,
    "the products of recurrent layers are missing": lambda one: one.recurrent,
    "the products of weights with weights (position biases) are missing": lambda one: one.constant,
}
CUT = "it would be right if cut off, not rounded"


@dataclass(frozen=True)
class Verdict:
    """exact: what the table should print, in the unit of the row, under its convention. macs: of one image."""

    row: Row
    verdict: Literal["right", "wrong", "unknown"]
    reason: str | None = None
    exact: float | None = None
    macs: int | None = None


def unit_of(pairs: Pairs) -> int:
    """That of numbers which name none: under it they come nearest to the MACs."""

    def far(unit: int) -> float:
        return median(abs(math.log(float(row.published) * unit / one.macs)) for row, one in pairs if row.published)

    return min((1, 10**6, 10**9), key=far)


def agreeing(convention: Convention, pairs: Pairs) -> int:
    """How many rows are right under it, but for what a tool passes over."""
    return sum(any(_is(row, number) for _, number in _ways(convention, one)) for row, one in pairs)


def convention_of(pairs: Pairs) -> Convention:
    """pairs: rows whose numbers and units are known, at least one."""
    return max(CONVENTIONS, key=lambda convention: agreeing(convention, pairs))


def explained(row: Row, one: Recount, convention: Convention) -> bool:
    """Whether the number is right, or its reason known without a look at another image."""
    return any(True for _ in _reasons(row, one, convention))


def judged(row: Row, one: Recount, convention: Convention, own: Recount | None = None) -> Verdict:
    """own: the same model at its own image, where that is another.

    Unknown where the model of today is not the one that was published, or its count is not whole.
    """
    assert row.unit is not None
    made = Verdict(row, "wrong", None, convention.of(one) / row.unit, one.macs)
    if _is(row, convention.of(one)):
        return replace(made, verdict="right")
    if reason := next(_reasons(row, one, convention, own), None):
        return replace(made, reason=reason)
    if row.parameters and not _same_parameters(row.parameters, one.parameters):
        words = f"its parameters are {row.parameters} in the table, {one.parameters:,} now"
        return replace(made, verdict="unknown", reason=f"another model by that name: {words}")
    if one.uncounted:
        return replace(made, verdict="unknown", reason=f"operators without a formula: {', '.join(one.uncounted)}")
    return replace(made, reason=CUT if row.published == _cut(row, convention.of(one)) else None)


def _reasons(row: Row, one: Recount, convention: Convention, own: Recount | None = None) -> Iterator[str]:
    yield from _fitting(row, convention, one)
    for another in CONVENTIONS:
        yield from _fitting(row, another, one, f"it is in {another.name}, {another.line}")
    if own and own.image:
        yield from _fitting(row, convention, own, f"it is the number for {size(own.image)}")


def _fitting(row: Row, convention: Convention, one: Recount, words: str = "") -> Iterator[str]:
    """Why the number is that of the recount after all: what is lost, and words."""
    for lost, number in _ways(convention, one):
        if _is(row, number):
            yield "; ".join(filter(None, (lost, words)))


def size(image: Image) -> str:
    """224x288, height first."""
    return "x".join(map(str, image))


def _ways(convention: Convention, one: Recount) -> Iterator[tuple[str, int]]:
    """What the table may hold: the number itself, then less what is lost, with words for that."""
    yield "", convention.of(one)
    for words, count in LOST.items():
        if lost := count(one):
            yield words, convention.of(replace(one, macs=one.macs - lost))


def _is(row: Row, number: int) -> bool:
    """Within half of the last printed digit."""
    assert row.published is not None and row.unit is not None
    return 2 * abs(row.published * row.unit - number) <= row.step * row.unit


def _cut(row: Row, number: int) -> Decimal:
    assert row.unit is not None
    return (Decimal(number) / row.unit // row.step) * row.step


def _same_parameters(printed: Decimal, parameters: int) -> bool:
    """Whatever unit they are printed in."""
    (step,) = printed_steps([printed])
    return any(2 * abs(printed * unit - parameters) <= step * unit for unit in (1, 10**6, 10**9))
