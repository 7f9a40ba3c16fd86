"""What a compiler makes of a trace: neighbouring pointwise operators and reductions as one kernel, a region.

Products, convolutions and fused attention stay kernels of their own. What lies between the same of them and hangs
together is a region: it reads what comes from outside once, and writes what is read outside; what only passes inside
costs nothing. So does a copy that only arranges (Ansel et al. 2024, TorchInductor, section 4.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from vitbench.step import Part, Step, Trace
from vitbench.work import PRODUCTS, REGION


def compiled(trace: Trace) -> Trace:
    """The same program with its regions merged, each after all that it reads."""
    steps = trace.steps
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
        return steps[0] if steps[0].kind in PRODUCTS else steps[0]._replace(kind=REGION)
    made: dict[int, Part] = {}
    given: dict[tuple[int, int, int], Part] = {}  # from outside: the same elements in another shape are read once
    for step in steps:
        for part in step.given:
            if part.storage not in made:
                given[part.storage, part.offset, part.bytes] = part
        made.update({part.storage: part for part in step.made})
    crossing = [part for storage, part in made.items() if readers[storage] - {region}]
    written = crossing or [steps[-1].made[0]]
    return Step(REGION, REGION, steps[-1].dtype, 0, 0, tuple(given.values()), tuple(written))
