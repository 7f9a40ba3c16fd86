"""What the storages of a running program hold: weights alone or data, scores on their way to a softmax, its weights."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor, UntypedStorage


class Role(NamedTuple):
    """data: it follows from the inputs, not from weights and constants alone.

    pairs: numbers of the products of data with data that it follows from, element by element.
    mixing: through a softmax.
    """

    data: bool = False
    pairs: frozenset[int] = frozenset()
    mixing: bool = False

    def __or__(self, other: Role) -> Role:
        return Role(self.data or other.data, self.pairs | other.pairs, self.mixing or other.mixing)


WEIGHTS, DATA = Role(), Role(data=True)


class Roles:
    """By storage, which a tensor shares with its views."""

    def __init__(self, inputs: Iterable[Tensor]) -> None:
        self._known: weakref.WeakKeyDictionary[UntypedStorage, Role] = weakref.WeakKeyDictionary()
        for tensor in inputs:
            self.give(tensor, DATA)

    def of(self, tensor: Tensor) -> Role:
        return self._known.get(tensor.untyped_storage(), WEIGHTS)

    def give(self, tensor: Tensor, role: Role) -> None:
        self._known[tensor.untyped_storage()] = role
