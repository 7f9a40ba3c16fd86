"""How a model grows, as a page for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from vitbench.scale.growth import Scale
from vitbench.scale.half import Half
from vitbench.scale.law import Law
from vitbench.scale.points import Point
from vitbench.scale.polynomial import Polynomial, told
from vitbench.scale.waste import KINDS, over

ROWS = 12  # sizes in the table
LINES = 3  # findings of one kind
PARTS = {"linear": "linear (weights x data)", "pairs": "pairs (data x data)", "weights": "weights x weights"}
T = TypeVar("T")


def show(scale: Scale, console: Console) -> None:
    """Law, sizes, findings, one under the other."""
    method = "closed form" if scale.on_paper else "counted on meta tensors"
    console.print(f"{scale.source}: MACs (1 MAC = 2 FLOPs) of a batch of {scale.batch}, inference; {method}")
    _print(console, "law", [*_law_rows(scale.law, scale.half), *_padding_rows(scale)])
    console.print(f"\n{_count(scale)}", style="bold", markup=False)
    console.print(Padding(_table(scale), (0, 0, 0, 2)))
    if scale.findings:
        _print(console, "findings", list(_finding_rows(scale)))


def _print(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(f"\n{title}", style="bold", markup=False)
    console.print(Padding(table, (0, 0, 0, 2)), markup=False)


def _law_rows(law: Law | None, half: Half | None) -> list[tuple[str, str]]:
    if law is None:
        return [("none", "no polynomial in the number of tokens is met exactly at all the sizes that were tried")]
    polynomials: dict[str, Polynomial] = {PARTS[part]: one for part, one in law.parts.items() if one.coefficients}
    polynomials["total"] = law.total
    fitted, verified = (", ".join(map(str, spread(sizes, 9))) for sizes in (law.fitted, law.verified))
    return [
        ("N", f"{rule(law)}: {law.tokens.what}; S: pixels a side"),
        *((name, one.written(law.variable)) for name, one in polynomials.items()),
        ("holds", f"at multiples of {law.period} pixels: fitted at {fitted}"),
        ("", f"and met exactly at {len(law.verified)} others: {verified}"),
        ("half", halved(law, half)),
        *([("", f"{law.variable} = {half.at}, exactly")] if half and half.at else []),
    ]


def _padding_rows(scale: Scale) -> Iterator[tuple[str, str]]:
    padded = [(more, point.image) for point in scale.sizes if (more := over(scale.law, point) or 0) > 0]
    if len(scale.sizes) > 1 and padded:
        most, image = max(padded)
        where = f"at {len(padded)} of {len(scale.sizes)} sizes"
        yield "padding", f"{where}, at most {most:.1%} over the law, at {image} pixels"


def rule(law: Law) -> str:
    """N, and n where it is used, by the side S of an image."""
    tokens = law.tokens
    side = "S" if tokens.pixels == 1 else f"S / {told(tokens.pixels)}"
    count = f"({side})^2" + (f" + {tokens.prefix}" if tokens.prefix else "")
    return count if law.variable == "N" else f"n^2{f' + {tokens.prefix}' if tokens.prefix else ''}, n = {side}"


def halved(law: Law, half: Half | None) -> str:
    """Where pairs are half of all MACs, in words."""
    if half is None:
        return "there are no products"
    if half.from_the_first:
        return f"pairs are at least half of all MACs from the smallest size on, {law.period} pixels"
    if not law.parts["pairs"].coefficients:
        return "there are no products of data with data"
    if half.at is None:
        return f"pairs never reach half of all MACs; their share tends to {float(half.limit):.1%}"
    return f"pairs reach half of all MACs at {law.variable} = {half.x:,.1f}, images of {half.image} pixels a side"


def _count(scale: Scale) -> str:
    few, all_ = len(shown(scale)), len(scale.sizes)
    skipped = f"; {scale.skipped} skipped, which do not divide into whole tokens" if scale.skipped else ""
    return (f"{few} of {all_} sizes" if few < all_ else "sizes") + skipped


def _table(scale: Scale) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    for name in ("pixels", "N", "GMACs", "linear", "pairs", "share of pairs", "over the law"):
        table.add_column(name, justify="right")
    for point in shown(scale):
        tokens = told(scale.law.tokens.count(point.image)) if scale.law else "-"
        gmacs = (f"{macs / 1e9:,.3f}" for macs in (point.macs, point.linear, point.pairs))
        share = f"{point.pairs / point.macs:.1%}" if point.macs else "-"
        more = over(scale.law, point)
        extra = "-" if more is None else f"{more:+.1%}" if more else "0"
        table.add_row(str(point.image), tokens, *gmacs, share, extra)
    return table


def shown(scale: Scale) -> list[Point]:
    """Some sizes of those at which the law holds, some of the others; the own, first and last, and round numbers."""
    if len(scale.sizes) <= ROWS:
        return scale.sizes
    ends = [point for point in scale.sizes if point.image in (scale.own_image, scale.sizes[0].image)]
    whole = [point for point in scale.sizes if not over(scale.law, point)]
    others = [point for point in scale.sizes if over(scale.law, point)]
    few = min(len(whole), ROWS // 2) if others else ROWS
    chosen = {point.image: point for some, most in ((whole, few), (others, ROWS - few)) for point in _round(some, most)}
    chosen.update({point.image: point for point in ends})
    return [chosen[image] for image in sorted(chosen)]


def _round(points: list[Point], most: int) -> list[Point]:
    """The multiples of the least power of two that leaves no more, and the last."""
    grain, left = 1, points
    while len(left) > max(most - 1, 0):
        grain *= 2
        left = [point for point in points if point.image % grain == 0]
    return [*left, *(points[-1:] if points[-1:] != left[-1:] else ())]


def _finding_rows(scale: Scale) -> Iterator[tuple[str, str]]:
    """Of each kind a few, smallest and largest size among them; of padding those that cost most in the table."""
    few_sizes = {point.image for point in shown(scale)}
    worst = {point.image: over(scale.law, point) or 0 for point in scale.sizes}
    for kind in KINDS:
        found = [one for one in scale.findings if one.kind == kind]
        if kind == "padding":
            found.sort(key=lambda one: (one.image not in few_sizes, -worst[one.image]))
        few = found[:LINES] if kind == "padding" else spread(found, LINES)
        for one in few:
            yield str(one.image), one.line
        if len(found) > len(few):
            yield "", f"and {len(found) - len(few)} more sizes like these; --json has all"


def spread(all_: Sequence[T], most: int) -> list[T]:
    """At most that many, evenly, first and last among them."""
    if len(all_) <= most:
        return list(all_)
    return [all_[round(n * (len(all_) - 1) / (most - 1))] for n in range(most)]
