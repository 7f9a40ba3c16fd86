"""Weights of other libraries under the names of a module here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor, nn

from vitbench.refusal import Refusal

Renaming = tuple[tuple[str, str], ...]  # pattern and replacement, applied in turn


def renamed(state: Mapping[str, Tensor], names: Renaming) -> dict[str, Tensor]:
    """The same weights under other names. Raises Refusal where two become one."""
    found = {}
    for name, value in state.items():
        for pattern, replacement in names:
            name = re.sub(pattern, replacement, name)
        if name in found:
            raise Refusal(f"the weights give {name} twice, under two names; expected each once")
        found[name] = value
    return found


def load(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Raises Refusal, and loads nothing, where a name is lacking, left over, or of another size."""
    if odd := [name for name, value in state.items() if not isinstance(value, Tensor)]:
        raise Refusal(f"the weights' {odd[0]} is of the type {type(state[odd[0]]).__name__}; expected tensors")
    expected = module.state_dict()
    if lacking := sorted(expected.keys() - state.keys()):
        raise Refusal(f"the weights lack {lacking[0]} and {len(lacking) - 1} more; expected those of this variant")
    if extra := sorted(state.keys() - expected.keys()):
        raise Refusal(f"the weights hold {extra[0]} and {len(extra) - 1} more, which this variant has not")
    for name, value in expected.items():
        if value.shape != state[name].shape:
            found, own = tuple(state[name].shape), tuple(value.shape)
            raise Refusal(f"the weights' {name} has the size {found}; this variant's has {own}")
    module.load_state_dict(state)
