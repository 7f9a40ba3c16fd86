"""The Pareto set of what fits a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitbench.choice.budget import Budget
from vitbench.choice.configurations import BATCHES, LARGEST, SMALLEST, Program, Rows, evaluated, programs
from vitbench.choice.front import front
from vitbench.choice.target import Target
from vitbench.refusal import Refusal


@dataclass(frozen=True)
class Asked:
    """images: smallest and largest side, in pixels. throughput: the batch of most images a second, not a single image.
    families: None means all.
    """

    budget: Budget
    images: tuple[int, int] = (224, 1024)
    throughput: bool = False
    families: Sequence[str] | None = None


@dataclass(frozen=True)
class Choice:
    """memory: bytes that bound it; None: nothing does. configurations: how many there are. fitting: how many of them
    are within the budget. rows: the Pareto set of these; most parameters first, largest image first.
    """

    asked: Asked
    target: Target
    programs: Sequence[Program]
    memory: int | None
    configurations: int
    fitting: int
    rows: Rows

    def largest(self) -> Rows:
        """Of each variant the row of the largest image; the fastest of these."""
        fastest = self.rows[np.argsort(self.rows["seconds"] / self.rows["batch"], kind="stable")]
        fastest = fastest[np.argsort(-fastest["image"], kind="stable")]
        first: dict[str, int] = {}
        for n, row in enumerate(fastest):
            first.setdefault(self.programs[row["program"]].variant.name, n)
        return _sorted(fastest[list(first.values())])


def choose(asked: Asked, target: Target) -> Choice:
    """The device's memory bounds it too. Raises Refusal where nothing fits; it names the nearest."""
    least, most = asked.images
    if not SMALLEST <= least <= LARGEST or not least <= most <= LARGEST:
        expected = f"{SMALLEST} to {LARGEST}, the smallest first"
        raise Refusal(f"images of {least} to {most} pixels a side; expected {expected}")
    found = programs(asked.families)
    rows = evaluated(found, target, asked.images, BATCHES if asked.throughput else (1,))
    if not len(rows):
        raise Refusal(f"no model takes images of {least} to {most} pixels a side; expected a wider range (image-min)")
    memory = min(filter(None, (asked.budget.memory, target.memory_bytes)), default=None)
    within = rows[rows["bytes"] <= memory] if memory else rows
    if not len(within):
        raise Refusal(_nearest(rows, found, asked, target, "memory", f"{_gigabytes(memory or 0)}"))
    fitting = within[within["seconds"] <= asked.budget.latency] if asked.budget.latency else within
    if not len(fitting):
        raise Refusal(_nearest(within, found, asked, target, "latency", f"{1e3 * (asked.budget.latency or 0):.4g} ms"))
    best = _best_batches(fitting) if asked.throughput else fitting
    return Choice(asked, target, found, memory, len(rows), len(fitting), _sorted(front(best, asked.throughput)))


def _best_batches(rows: Rows) -> Rows:
    """Of each program and image the batch of most images a second."""
    order = np.lexsort((rows["batch"], rows["seconds"] / rows["batch"], rows["image"], rows["program"]))
    ordered = rows[order]
    _, first = np.unique(ordered[["program", "image"]], return_index=True)
    found: Rows = ordered[first]
    return found


def _sorted(rows: Rows) -> Rows:
    found: Rows = rows[np.lexsort((rows["seconds"], -rows["image"], -rows["parameters"]))]
    return found


def _nearest(rows: Rows, found: Sequence[Program], asked: Asked, target: Target, bound: str, limit: str) -> str:
    """rows: all that this bound alone refuses."""
    row = rows[np.lexsort((rows["seconds"], rows["bytes" if bound == "memory" else "seconds"]))[0]]
    program = found[row["program"]]
    takes = _gigabytes(row["bytes"]) if bound == "memory" else f"{1e3 * row['seconds']:.3g} ms"
    window = f", windows of {program.window}" if program.window else ""
    name = f"{program.variant.name} at {row['image']}{window} ({program.backend})"
    return (
        f"no configuration of {len(rows):,} fits {limit} on {target.name} with images from {asked.images[0]} pixels: "
        f"the nearest is {name}, {takes} ({bound})"
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
