"""What a compiler makes of a trace: neighbouring pointwise operators and reductions as one kernel, a region.

Products, convolutions and fused attention stay kernels of their own. What lies between the same of them and hangs
together is a region: it reads what comes from outside once, and writes what is read outside; what only passes inside
costs nothing. So does a copy that only arranges (Ansel et al. 2024, TorchInductor, section 4.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from vitbench.step import Part, Step, Trace
from vitbench.work import PRODUCTS, REGION


def compiled(trace: Trace) -> Trace:
    """The same program with its regions merged, each in the place of its last step."""
    steps, members = trace.steps, _regions(trace.steps)
    regions: dict[int, list[int]] = defaultdict(list)
    readers: dict[int, list[int]] = defaultdict(list)  # by storage, the steps that read it
    for n, step in enumerate(steps):
        regions[members[n]].append(n)
        for part in step.given:
            readers[part.storage].append(n)
    ordered = sorted(regions.values(), key=max)
    return replace(trace, steps=[_merged(trace.steps, some, readers) for some in ordered])


def _regions(steps: Iterable[Step]) -> list[int]:
    """The number of each step's region: the first of its steps.

    depth of a step: how many products lie on the longest way to it. Steps of one depth, one of which reads what the
    other wrote, are of one region: no product can lie between them.
    """
    depths: dict[int, int] = {}  # by storage
    writers: dict[int, int] = {}  # by storage, the region of its last writer that is no product
    found: list[int] = []
    joined: dict[int, int] = {}  # regions that turned out to be one

    def root(region: int) -> int:
        while region in joined:
            region = joined[region]
        return region

    for n, step in enumerate(steps):
        depth = max((depths.get(part.storage, 0) for part in step.given), default=0)
        if step.kind in PRODUCTS:
            found.append(n)
            depths.update({part.storage: depth + 1 for part in step.made})
            for part in step.made:
                writers.pop(part.storage, None)
            continue
        own = n
        for part in step.given:
            if part.storage in writers and depths[part.storage] == depth:
                before = root(writers[part.storage])
                if before != (here := root(own)):
                    joined[max(before, here)] = min(before, here)
        found.append(own)
        for part in step.made:
            depths[part.storage] = depth
            writers[part.storage] = own
    return [root(region) for region in found]


def _merged(steps: Sequence[Step], numbers: list[int], readers: Mapping[int, list[int]]) -> Step:
    """numbers: of the region's steps, in order. readers: the numbers of the steps that read a storage."""
    first = steps[numbers[0]]
    if len(numbers) == 1:
        return first if first.kind in PRODUCTS else first._replace(kind=REGION)
    made: dict[int, Part] = {}
    given: dict[Part, None] = {}
    crossing: dict[int, Part] = {}
    for n in numbers:
        given.update({part: None for part in steps[n].given if part.storage not in made})
        for part in steps[n].made:
            made[part.storage] = part
            if any(reader > n and reader not in numbers for reader in readers[part.storage]):
                crossing[part.storage] = part
    last = steps[numbers[-1]]
    written = tuple(crossing.values()) or last.made[:1]
    return Step(REGION, REGION, last.dtype, 0, 0, tuple(given), written)
