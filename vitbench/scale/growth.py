"""How a model grows with its images: MACs at several sizes, the exact law, where pairs reach half, what is wasted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from vitbench.refusal import Refusal
from vitbench.scale.half import Half, half
from vitbench.scale.law import Law, checked, law, unit
from vitbench.scale.points import Point, Points
from vitbench.scale.waste import Finding, findings

LARGEST = 2048  # pixels, where no range is asked for
COUNTED = 12  # sizes, where no step is asked for


@dataclass(frozen=True)
class Range:
    """Sizes from first to last, both among them, in pixels a side. step: None leaves the choice between them."""

    first: int
    last: int
    step: int | None = None

    def __str__(self) -> str:
        last = self.last if self.last > self.first or self.step else None
        return ":".join(str(one) for one in (self.first, last, self.step) if one)


@dataclass(frozen=True)
class Scale:
    """sizes: what was counted within the range. The other fields as in the JSON (document.py)."""

    source: str
    batch: int
    on_paper: bool
    own_image: int
    law: Law | None
    half: Half | None
    sizes: list[Point]
    skipped: int
    findings: list[Finding]


def parse_range(text: str) -> Range:
    """A, A:B or A:B:STEP."""
    words = text.split(":")
    if len(words) > 3 or not all(word.isdecimal() and 0 < int(word) < 10**6 for word in words):
        raise Refusal(f"sizes {text!r} are none of A, A:B and A:B:STEP, in pixels a side; expected 224:2048, say")
    first, last, *step = (int(word) for word in (words if len(words) > 1 else words * 2))
    if last < first:
        raise Refusal(f"sizes {text!r} end before they begin; expected {last}:{first}")
    return Range(first, last, step[0] if step else None)


def scale(
    source: str, asked: Range | None = None, batch: int = 1, told: Callable[[int], None] = lambda _: None
) -> Scale:
    """asked: None means from the model's own size on. told: is called with each size before it is counted.

    Raises Refusal.
    """
    if batch < 1:
        raise Refusal(f"batch {batch} is less than 1")
    points = Points(source, batch, told)
    asked = asked or Range(points.own, max(LARGEST, 4 * points.own))
    found = law(points)
    step = unit(points, found)
    images, skipped = _images(points, asked, step)
    for image in images:
        points.at(image)
    if asked.step is None and asked.first < asked.last:
        known = [*points.found, *points.refused]
        images = sorted({*images, *(image for image in known if asked.first <= image <= asked.last)})
    sizes = [points.found[image] for image in images if image in points.found]
    if not sizes:
        raise Refusal(f"{source} takes none of the sizes {asked}: {points.refused[images[0]]}")
    found = checked(points, found) if found else None
    halved = half(points, found) if found else None
    wasted = findings(points, found, images)
    return Scale(source, batch, points.on_paper, points.own, found, halved, sizes, skipped, wasted)


def _images(points: Points, asked: Range, step: int) -> tuple[list[int], int]:
    """The sizes to look at, and how many of those asked for divide into no whole tokens."""
    all_ = range(asked.first, asked.last + 1, asked.step or 1)
    whole = [image for image in all_ if image % step == 0]
    if not whole:
        down = asked.first // step * step
        nearest = " and ".join(str(image) for image in (down, down + step) if image)
        raise Refusal(f"sizes {asked}: none is a multiple of the {step} pixels of a token; nearest {nearest}")
    if asked.step is not None:
        return whole, len(all_) - len(whole)
    return (whole if points.on_paper else _spread(points, whole, step)), 0


def _spread(points: Points, whole: list[int], step: int) -> list[int]:
    """First, last, and what halves the widest gap beside the sizes that are known, in round numbers."""
    found = sorted({whole[0], whole[-1], *(image for image in points.found if whole[0] <= image <= whole[-1])})
    while 1 < len(found) < COUNTED:
        gap, low = max((after - before, before) for before, after in pairwise(found))
        if gap <= step:
            break
        grain = step
        while 8 * grain <= gap:
            grain *= 2
        found = sorted({*found, (low + gap // 2) // grain * grain})
    return found
