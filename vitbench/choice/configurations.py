"""All configurations that there are to choose from, and what each takes.

The variants of the suite that are written on paper, with their patches; windows that are not longer than the grid of a
Swin's third stage, where most of its blocks are; square images of whole patches (of Swin: of whole tokens of its last
stage); the backends of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitbench.choice.target import Target
from vitbench.ledger.attend import BACKENDS
from vitbench.ledger.program import known, ledger, pixels
from vitbench.model import Variant, models
from vitbench.refusal import Refusal

WINDOWS = (7, 8, 12, 14, 16)  # of Swin and of its second version
THIRD = 16  # pixels a token of a Swin's third stage
SMALLEST = 64  # pixels a side: two tokens in a Swin's last stage
BATCHES = tuple(2**n for n in range(11))  # that throughput is sought among
LARGEST = 4096  # pixels a side; the MACs of the largest batch of such images still are an int64

# program, family: by number. seconds: of one call. bytes: at its peak. macs: of one image.
ROW = np.dtype(
    [
        ("program", "i4"), ("family", "i4"), ("image", "i8"), ("batch", "i8"), ("patch", "i8"),
        ("parameters", "i8"), ("macs", "i8"), ("seconds", "f8"), ("bytes", "i8"),
    ]
)  # fmt: skip
Rows = np.ndarray[Any, np.dtype[np.void]]


@dataclass(frozen=True)
class Program:
    """variant: with the window that is chosen. own: the window that it was published with; None: it has none."""

    variant: Variant
    backend: str
    window: int | None = None
    own: int | None = None

    @property
    def patch(self) -> int:
        return self.variant.model.pixels()

    @property
    def family(self) -> str:
        return family(self.variant)

    def sides(self, least: int, most: int) -> np.ndarray:
        """Of its images, in pixels."""
        step = pixels(self.variant)
        least = max(least, SMALLEST, THIRD * self.window if self.window else 0)
        return np.arange(-(-least // step) * step, most + 1, step, dtype=np.int64)


def family(variant: Variant) -> str:
    return variant.name.partition("_")[0]


def programs(families: Sequence[str] | None = None) -> list[Program]:
    """Of these families; None: of all. Raises Refusal for one that is not there."""
    variants = [variant for variant in models if known(variant)]
    there = list(dict.fromkeys(map(family, variants)))
    for name in families or ():
        if name not in there:
            raise Refusal(f"unknown family {name!r}; known: {', '.join(there)}")
    chosen = [one for variant in variants if family(variant) in (families or there) for one in _windowed(variant)]
    alike: dict[Variant, tuple[Variant, int | None, int | None]] = {}
    for variant, window, own in chosen:  # a Swin published with other windows is the same program with these
        nameless = replace(variant, name="", image=0, source="")
        if nameless not in alike or window == own:
            alike[nameless] = variant, window, own
    return [Program(variant, backend, *windows) for variant, *windows in alike.values() for backend in BACKENDS]


def _windowed(variant: Variant) -> list[tuple[Variant, int | None, int | None]]:
    """With each window, and the own one; the variant alone where it has none."""
    model: Any = variant.model
    own = getattr(model, "window", None)
    if own is None:
        return [(variant, None, None)]
    return [(replace(variant, model=replace(model, window=window)), window, own) for window in WINDOWS]


def evaluated(found: Sequence[Program], target: Target, sides: tuple[int, int], batches: Sequence[int]) -> Rows:
    """A row for each program, image from the first side to the second, and batch."""
    return np.concatenate([np.empty(0, ROW), *_rows(found, target, sides, batches)])


def _rows(found: Sequence[Program], target: Target, sides: tuple[int, int], batches: Sequence[int]) -> Iterable[Rows]:
    each = np.array(batches, dtype=np.int64)[None, :]
    families = sorted({program.family for program in found})
    for n, program in enumerate(found):
        images = program.sides(*sides)[:, None]
        if not images.size:
            continue
        told = ledger(program.variant, images, each, program.backend, target.dtype, target.kernels)
        rows = np.zeros((images.size, each.size), ROW)
        rows["family"] = families.index(program.family)
        rows["program"], rows["patch"], rows["image"], rows["batch"] = n, program.patch, images, each
        rows["parameters"], rows["bytes"] = told.parameters, told.peak_bytes
        rows["macs"] = told.macs // each
        rows["seconds"] = target.seconds(told.works)
        yield rows.ravel()
