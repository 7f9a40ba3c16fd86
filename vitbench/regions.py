"""What a compiler makes of a trace: neighbouring pointwise operators and reductions as one kernel, a region.

Products, convolutions and fused attention stay kernels of their own. What lies between the same of them and hangs
together is a region: it reads what comes from outside once, and writes what is read outside; what only passes inside
costs nothing. So does a copy that only arranges (Ansel et al. 2024, TorchInductor, section 4.4). What is gathered from
weights (biases by relative position) is looked up besides, by each element of the data that it meets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from vitbench.step import BYTES, Part, Step, Trace
from vitbench.work import PRODUCTS, REGION

LOOKED_UP = {"index", "gather"}  # single elements; rows have an index for many
ALIGNED = 8  # keys, of a mask that the kernel takes as it lies


def compiled(trace: Trace, whole_masks: bool = False) -> Trace:
    """The same program with its regions merged, each after all that it reads.

    whole_masks: a mask that all images share is written out for each of them, as torch did before 2.7 where the keys
    are a multiple of 8 (pytorch#145760).
    """
    steps = list(_looking_up(_with_whole_masks(trace.steps) if whole_masks else trace.steps))
    members, depths = _regions(steps)
    readers: dict[int, set[int]] = defaultdict(set)  # by storage, the regions (or steps) that read it
    for n, step in enumerate(steps):
        for part in step.given:
            readers[part.storage].add(members[n])
    by_region: dict[int, list[int]] = defaultdict(list)
    for n, region in enumerate(members):
        by_region[region].append(n)
    order = sorted(by_region, key=lambda region: (depths[region], steps[region].kind in PRODUCTS, region))
    return replace(trace, steps=[_merged([steps[n] for n in by_region[region]], readers, region) for region in order])


def _with_whole_masks(steps: Iterable[Step]) -> Iterator[Step]:
    for n, step in enumerate(steps):
        if step.kind == "attention" and len(step.given) > 3:
            q, k, v, mask, *rest = step.given
            keys = k.shape[-2]
            if not mask.data and keys % ALIGNED == 0:
                shape = (*q.shape[:-1], keys)
                strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
                whole = Part(-1 - n, 0, shape, strides, mask.dtype, step.data)
                yield Step("expand", "copy", mask.dtype, 0, 0, (mask,), (whole,), looked=whole.bytes)
                step = step._replace(given=(q, k, v, whole, *rest))
        yield step


def _looking_up(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, with what they look up. What is gathered may be arranged and computed with before it meets data."""
    gathered: dict[int, int] = {}  # by storage: bytes of indices and table that an element takes
    for step in steps:
        if step.kind in PRODUCTS:
            yield step
            continue
        found = max((gathered.get(part.storage, 0) for part in step.given), default=0)
        if step.operator in LOOKED_UP:
            found = sum(BYTES[part.dtype] for part in step.given)
        gathered.update({part.storage: 0 if step.data else found for part in step.made})
        if step.data and found and step.operator not in LOOKED_UP:
            step = step._replace(looked=prod(step.made[0].shape) * found)
        yield step


def _regions(steps: Iterable[Step]) -> tuple[list[int], list[int]]:
    """Of each step the number of its region, which is that of the first of its steps; and its depth.

    depth of a step: how many products lie on the longest way to it. Steps of one depth, one of which reads what the
    other wrote, are of one region: no product can lie between them. What is written in place was read as well.
    """
    depths: dict[int, int] = {}  # by storage
    writers: dict[int, int] = {}  # by storage, the region of its last writer that is no product
    found: list[int] = []
    every: list[int] = []  # depths of the steps
    joined: dict[int, int] = {}  # regions that turned out to be one

    def root(region: int) -> int:
        while region in joined:
            region = joined[region]
        return region

    for n, step in enumerate(steps):
        touched = (*step.given, *step.made)
        depth = max((depths.get(part.storage, 0) for part in touched), default=0)
        every.append(depth)
        if step.kind in PRODUCTS:
            found.append(n)
            depths.update({part.storage: depth + 1 for part in step.made})
            for part in step.made:
                writers.pop(part.storage, None)
            continue
        own = n
        for part in touched:
            if part.storage in writers and depths[part.storage] == depth:
                before = root(writers[part.storage])
                if before != (here := root(own)):
                    joined[max(before, here)] = min(before, here)
        found.append(own)
        for part in step.made:
            depths[part.storage] = depth
            writers[part.storage] = own
    return [root(region) for region in found], every


def _merged(steps: list[Step], readers: dict[int, set[int]], region: int) -> Step:
    if len(steps) == 1:
        return steps[0] if steps[0].kind in PRODUCTS else steps[0]._replace(kind=REGION, each=False)
    made: dict[int, Part] = {}
    given: dict[tuple[int, int, int], Part] = {}  # from outside: the same elements in another shape are read once
    for step in steps:
        for part in step.given:
            if part.storage not in made:
                given[part.storage, part.offset, part.bytes] = part
        made.update({part.storage: part for part in step.made})
    crossing = [part for storage, part in made.items() if readers[storage] - {region}]
    written = crossing or [steps[-1].made[0]]
    looked = sum(step.looked for step in steps)
    return Step(REGION, REGION, steps[-1].dtype, 0, 0, tuple(given.values()), tuple(written), looked=looked)
