"""python -m benchmarks.closed_forms [--json]: how long MACs by closed form take: of a model, and of a million of them.

Side by side in one process, in rounds, a sample of each a round. Each number is then held against the scalar form: of a
model its attentions one by one and what is around them, of the million a sample of rows in Python's integers. NOT the
time of any attention: arithmetic on shapes alone. Ends with 1 where two numbers differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from vitbench.cost import total
from vitbench.model import Model, models
from vitbench.refusal import Refusal
from vitbench.shape import Shape

MODELS = ("vit_b_16", "swin_t")
MILLION = 1_000_000
BLOCK = 16_384  # configurations at once: arrays of 128 KiB, a few of which stay in a core's cache
CHECKED = 1_000  # rows of the million
LARGEST = Shape(batch=256, height=64, width=64, dim=64 * 16, heads=16, prefix=5)  # of the million


class Timed(NamedTuple):
    """what: is counted. macs: of the one, or of all together. calls: in a sample. samples: seconds a call, a round."""

    what: str
    macs: int
    calls: int
    samples: list[float]

    def to_dict(self) -> dict[str, Any]:
        low, _, high = quantiles(self.samples)
        return {**self._asdict(), "median": median(self.samples), "quartiles": [low, high], "least": min(self.samples)}


def configurations(count: int, seed: int = 0) -> Shape:
    """That many shapes of a vision transformer as arrays (count,) of int64, none larger than LARGEST."""
    draw = np.random.default_rng(seed)
    columns = {each.name: draw.integers(1, getattr(LARGEST, each.name), count, endpoint=True) for each in fields(Shape)}
    columns["dim"] = columns["heads"] * draw.integers(1, LARGEST.head_dim, count, endpoint=True)
    return Shape(**columns)


def rows(shapes: Shape, chosen: Any) -> Shape:
    return Shape(*(getattr(shapes, each.name)[chosen] for each in fields(Shape)))


def macs_of_all(model: Model, shapes: Shape) -> np.ndarray:
    """MACs of each configuration (count,), int64, block by block."""
    count = len(shapes.batch)
    found = np.empty(count, np.int64)
    for start in range(0, count, BLOCK):
        block = slice(start, start + BLOCK)
        found[block] = model.cost(rows(shapes, block), "model").total_macs
    return found


def one_by_one(model: Model, shape: Shape) -> int:
    """MACs with no block counted for another."""
    costs = [attention.cost() for attention in model.attentions(shape)]
    return int(total((1, [*costs, model.around(shape)])).total_macs)


def refused(model: Model, shapes: Shape, found: np.ndarray) -> str | None:
    """Why these are not the MACs of the shapes, by a sample of rows; None if they are."""
    if one_by_one(model, LARGEST) >= 2**63:
        return f"{LARGEST} has more MACs than int64 holds; expected smaller sides"
    for row in np.random.default_rng(1).choice(len(found), min(CHECKED, len(found)), replace=False):
        shape = Shape(*(int(getattr(shapes, each.name)[row]) for each in fields(Shape)))
        if (expected := one_by_one(model, shape)) != found[row]:
            return f"{model} on {shape} has {expected} MACs, not {found[row]}: the forms of arrays and integers differ"
    return None


def sample(call: Callable[[], object], calls: int) -> float:
    """Seconds a call."""
    start = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - start) / calls


def measure(rounds: int = 20, count: int = MILLION, calls: int = 500) -> list[Timed]:
    """Both models and the configurations. Raises Refusal where a number is not that of the scalar form."""
    variants, shapes, many = [models[name] for name in MODELS], configurations(count), models[MODELS[0]].model
    found = macs_of_all(many, shapes)
    if reason := refused(many, shapes, found):
        raise Refusal(reason)
    subjects: list[tuple[str, int, int, Callable[[], Any]]] = []
    for variant in variants:
        shape = variant.shape()
        macs, expected = variant.model.cost(shape, "model").total_macs, one_by_one(variant.model, shape)
        if macs != expected:
            raise Refusal(f"{variant.name} has {expected} MACs one by one, not {macs}: a block was counted wrongly")
        subjects.append((variant.name, macs, calls, lambda v=variant, s=shape: v.model.cost(s, "model").total_macs))  # type: ignore[misc]
    subjects.append((f"{count} of {many}", sum(found.tolist()), 1, lambda: macs_of_all(many, shapes)))
    taken = [[sample(call, calls) for _, _, calls, call in subjects] for _ in range(rounds)]
    return [
        Timed(what, macs, calls, list(samples))
        for (what, macs, calls, _), samples in zip(subjects, zip(*taken, strict=True), strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="every sample, in seconds")
    options = parser.parse_args()
    try:
        found = [timed.to_dict() for timed in measure()]
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for one in found:
        low, high = (1e6 * each for each in one["quartiles"])
        times = f"{1e6 * one['median']:9.1f} us (quartiles {low:.1f} to {high:.1f}, least {1e6 * one['least']:.1f})"
        print(f"{one['what']:18} {one['macs']:>26} MACs {times}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
