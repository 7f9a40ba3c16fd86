"""The kernels of many calls as a few rows of arrays, so that all of them are timed at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from vitbench.devices import Card
from vitbench.gpu import Constants, kernel_seconds
from vitbench.work import Work

NUMBERS = ("macs", "read", "written", "inner", "launches", "serial", "looked")


class Kernels:
    """calls: the work of each."""

    def __init__(self, calls: Sequence[Iterable[Work]]) -> None:
        groups: dict[tuple[str, str, bool], list[tuple[float, ...]]] = defaultdict(list)
        for n, works in enumerate(calls):
            for work in works:
                row = (n, *(getattr(work, name) for name in NUMBERS))
                groups[work.kind, work.dtype, work.strided].append(row)
        self.calls = len(calls)
        self.groups: list[tuple[np.ndarray, Work]] = []
        for (kind, dtype, strided), rows in groups.items():
            numbers, *columns = np.array(rows, float).T
            work = Work(kind, kind, dtype, **dict(zip(NUMBERS, columns, strict=True)), strided=strided)
            self.groups.append((numbers.astype(int), work))

    def seconds(self, card: Card, constants: Constants) -> np.ndarray:
        """Of each call."""
        total = np.zeros(self.calls)
        for numbers, work in self.groups:
            total += np.bincount(numbers, kernel_seconds(work, card, constants), self.calls)
        assert not np.isnan(total).any(), "a kernel has no time"
        return total
