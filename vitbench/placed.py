"""A module that was opened on meta tensors, for a while on fake ones of a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from vitbench.autocast import AMP
from vitbench.exact.watch import tensors
from vitbench.source import Opened


@contextmanager
def placed(opened: Opened, device: str, dtype: str) -> Iterator[tuple[Any, ...]]:
    """Inside, the module's tensors are fake ones of a device, and so are the inputs that it gives.

    What a module keeps outside its buffers moves along.
    """
    memo: dict[int, Tensor] = {}

    def place(one: Tensor) -> Tensor:
        if id(one) not in memo:
            kind = getattr(torch, dtype) if dtype not in AMP and one.is_floating_point() else one.dtype
            placed = torch.empty_strided(one.shape, one.stride(), dtype=kind, device=device)
            placed.requires_grad_(one.requires_grad)
            weight = isinstance(one, nn.Parameter)
            memo[id(one)] = nn.Parameter(placed, one.requires_grad) if weight else placed
        return memo[id(one)]

    def moved(value: Any) -> Any:
        tree: Any = tree_map_only(Tensor, place, value)
        return tree

    before: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for module in opened.module.modules():
        holders: tuple[Any, ...] = (module._parameters, module._buffers, module.__dict__)
        for holder in holders:
            found = {name: one for name, one in holder.items() if isinstance(one, (Tensor, list, tuple))}
            found = {name: one for name, one in found.items() if any(True for _ in tensors(one))}
            before.append((holder, found))
            holder.update({name: moved(one) for name, one in found.items()})
    try:
        yield moved(opened.inputs)
    finally:
        for holder, found in before:
            holder.update(found)
