"""Bytes that a program holds, from the lifetimes of its tensors: what is asked of an allocator, and given back.

Storage by storage, as Python and autograd keep them alive. Space that an operator takes and gives back within itself is
NOT seen, but can be told. On meta tensors too, where nothing is allocated.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable
from itertools import accumulate

import torch
from torch import Tensor


class Lifetimes:
    """known: tensors whose storages are no one's doing: inputs, parameters, buffers."""

    def __init__(self, known: Iterable[Tensor]) -> None:
        self.alive = {id(storage): weakref.ref(storage) for storage in map(Tensor.untyped_storage, known)}
        self.events: list[tuple[int, int]] = []  # which storage, bytes more or less
        self.numbers: dict[int, int] = {}  # which, by id of a storage that is alive

    def see(self, tensors: Iterable[Tensor]) -> None:
        """What an operator gave; what is not known yet was taken now."""
        for tensor in tensors:
            if tensor.layout is torch.strided:
                self._take(tensor.untyped_storage())

    def _take(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)
        known = self.alive.get(key)
        if known is not None and known() is storage:
            return
        number, size = len(self.events), storage.nbytes()
        self.alive[key] = weakref.ref(storage, lambda _: self.events.append((number, -size)))
        self.numbers[key] = number
        self.events.append((number, size))

    def within(self, sizes: Iterable[int]) -> int:
        """Bytes that the last operator took above what it gave, and gave back before it ended: in several storages, of
        which the number of the first is returned.
        """
        first = len(self.events)
        taken = list(enumerate(sizes, first))
        self.events += [*taken, *((number, -size) for number, size in taken)]
        return first

    def outlived(self) -> bool:
        """Whether something that was taken is still alive."""
        return any(self.alive[key]() is not None for key in self.numbers)

    def highest(self, of: Iterable[Tensor]) -> tuple[int, int]:
        """Most bytes at once, and how many of them were the storages of some tensors that are still alive."""
        chosen = {self.numbers.get(id(tensor.untyped_storage())) for tensor in of}
        total = part = 0
        found = (0, 0)
        for number, size in self.events:
            total += size
            part += size if number in chosen else 0
            found = max(found, (total, part), key=lambda pair: pair[0])
        return found

    def moments(self, fixed: Container[int]) -> list[tuple[int, int]]:
        """Bytes held at once, of some storages and of all others, where no other moment holds more of both.

        fixed: the storages' numbers.
        """
        held, seen = (0, 0), set[tuple[int, int]]()
        for number, size in self.events:
            held = (held[0] + size, held[1]) if number in fixed else (held[0], held[1] + size)
            seen.add(held)
        found: list[tuple[int, int]] = []
        for some, others in sorted(seen, reverse=True):
            if not found or others > found[-1][1]:
                found.append((some, others))
        return found

    def peak(self, without: Iterable[Tensor] = ()) -> int:
        """Most bytes at once, but for the storages of some tensors that are still alive."""
        left_out = {self.numbers.get(id(tensor.untyped_storage())) for tensor in without}
        return max(accumulate(size for number, size in self.events if number not in left_out), default=0)
