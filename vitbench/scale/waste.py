"""Is a resolution wasteful: padding, windows that no longer fit, position tables that must be resized, refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vitbench.scale.law import Law
from vitbench.scale.points import Point, Points
from vitbench.scale.polynomial import told

KINDS = ("padding", "window", "table", "refused", "uncounted")


@dataclass(frozen=True)
class Finding:
    """image: pixels a side. kind: one of KINDS. line: for people, without the size."""

    image: int
    kind: str
    line: str


def findings(points: Points, law: Law | None, images: Sequence[int]) -> list[Finding]:
    """At each of the sizes, compared with the model's own. Nothing is counted anew."""
    own, found = points.found[points.own], []
    for image in images:
        if image in points.refused:
            found.append(Finding(image, "refused", points.refused[image]))
            continue
        point = points.found[image]
        lines = {
            "padding": _padding(law, point),
            "window": _window(points, own, point),
            "table": _table(own, point),
            "uncounted": f"not counted: {', '.join(point.uncounted)}" if point.uncounted else None,
        }
        found += [Finding(image, kind, line) for kind, line in lines.items() if line]
    return found


def over(law: Law | None, point: Point) -> float | None:
    """MACs over those of the law, as a share of the law's; None without a law."""
    macs = law.macs(point.image) if law else 0
    return float((point.macs - macs) / macs) if macs else None


def _padding(law: Law | None, point: Point) -> str | None:
    if law is None or point.macs == law.macs(point.image):
        return None
    more = point.macs - law.macs(point.image)
    down = point.image // law.period * law.period
    fitting = [str(image) for image in (down, down + law.period) if image]
    none = f"none at {' and '.join(fitting)}"
    if more > 0:
        return f"padding costs {told(more)} MACs, {over(law, point):.1%} over the law; {none}"
    return f"{told(-more)} MACs, {-(over(law, point) or 0):.1%}, less than the law: not all of the grid is used; {none}"


def _window(points: Points, own: Point, point: Point) -> str | None:
    """Where as many keys at the model's own size and at a larger one mean a window, and here are fewer."""
    larger = points.found.get(2 * points.own)
    if larger is None or not len(own.attentions) == len(larger.attentions) == len(point.attentions):
        return None
    shrunk = [
        (before[1], here[1])
        for before, after, here in zip(own.attentions, larger.attentions, point.attentions, strict=True)
        if before == after and here[1] < before[1]
    ]
    if not shrunk:
        return None
    window, left = max(shrunk, key=lambda pair: pair[0] / pair[1])
    count, all_ = len(shrunk), len(own.attentions)
    return f"windows of {window} tokens are larger than the grid in {count} of {all_} attentions and shrink to {left}"


def _table(own: Point, point: Point) -> str | None:
    changed = list(_changed(own, point))
    if changed:
        name, more = changed[0], f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        here, before = (of.shapes.get(name) or "absent" for of in (point, own))
        return f"{name}{more} is {here} here and {before} at {own.image}: trained ones must be resized"
    if point.parameters != own.parameters:  # on paper they have no names
        line = f"{point.parameters:,} parameters, {own.parameters:,} at {own.image}"
        return f"{line}: a trained position table must be resized"
    return None


def _changed(own: Point, point: Point) -> Iterator[str]:
    for name in dict.fromkeys((*own.shapes, *point.shapes)):
        if own.shapes.get(name) != point.shapes.get(name):
            yield name
