"""How a program spells a call: `a @ b` or `a.matmul(b)`, `x.softmax(-1)` or `functional.softmax(x, -1)`.

Torch's overrides give them one name; counters that patch functions see the one and not the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

OPERATORS = ("__matmul__", "__rmatmul__", "__add__", "__radd__", "__iadd__", "__mul__", "__rmul__", "__imul__")
BESIDE = ("relu", "softmax")  # functions of torch.nn.functional that there are as methods and in torch too
SPELLED = [
    *((Tensor, name, name) for name in OPERATORS),
    *((Tensor, name, f"Tensor.{name}") for name in BESIDE),
    *((torch, name, f"torch.{name}") for name in BESIDE),
]


@contextmanager
def told_apart() -> Iterator[None]:
    """Inside, a TorchFunctionMode sees `a @ b` as the function __matmul__, and `x.softmax()` as Tensor.softmax."""
    own = [(place, name, getattr(place, name)) for place, name, _ in SPELLED]
    try:
        for place, name, called in SPELLED:
            setattr(place, name, _named(called, getattr(place, name)))
        yield
    finally:
        for place, name, function in own:
            setattr(place, name, function)


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def spelled(*args: Any, **kwargs: Any) -> Any:
        if has_torch_function(args[:1]):
            return handle_torch_function(spelled, args[:1], *args, **kwargs)
        return function(*args, **kwargs)

    spelled.__name__ = name
    return spelled
