"""Bytes that a program holds, from the lifetimes of its tensors: what is asked of an allocator, and given back.

Storage by storage, as Python and autograd keep them alive. Space that an operator takes and gives back within itself is
NOT seen. On meta tensors too, where nothing is allocated.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
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

    def peak(self, without: Iterable[Tensor] = ()) -> int:
        """Most bytes at once, but for the storages of some tensors that are still alive."""
        left_out = {self.numbers.get(id(tensor.untyped_storage())) for tensor in without}
        return max(accumulate(size for number, size in self.events if number not in left_out), default=0)
