"""What a counter of another package changes, put back: functions of torch that it replaced, and the module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PLACES = (torch, Tensor, functional)


@contextmanager
def put_back(module: nn.Module) -> Iterator[None]:
    """Afterwards torch's functions, and the hooks, buffers, modes and attributes of the module, are as before.

    However it ends: what counters patch outlives a model that raises, and is patched again by the next count.
    """
    functions = [(place, dict(vars(place))) for place in PLACES]
    attributes = [(held, dict(held)) for part in module.modules() for held in _dictionaries(part)]
    try:
        yield
    finally:
        for place, before in functions:
            for name in [name for name, value in vars(place).items() if value is not before.get(name)]:
                _restore(place, name, before)
        for held, before in attributes:
            held.clear()
            held.update(before)


def _restore(place: Any, name: str, before: dict[str, Any]) -> None:
    """Of what is new: not what torch itself makes as it is first used."""
    now = vars(place)[name]
    if not isinstance(now, FunctionType) or now.__globals__["__name__"].partition(".")[0] == "torch":
        return
    if name in before:
        setattr(place, name, before[name])
    else:
        delattr(place, name)


def _dictionaries(part: nn.Module) -> list[Any]:
    """The attributes, and those of them that are dictionaries: hooks, buffers, parameters, modules."""
    own = vars(part)
    return [own, *(one for one in own.values() if isinstance(one, dict))]
