"""Factories that `vitbench count` is tried on."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def attention() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A layer with inputs of its own: 197 tokens of 768 features."""
    x = torch.randn(1, 197, 768)
    return nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True), (x,)


class Choosy(nn.Module):
    """Takes images of 64 pixels alone."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, 4)

    def forward(self, x: Tensor) -> Any:
        if x.shape[-1] != 64:
            raise ValueError(f"64 pixels, not {x.shape[-1]}")
        return self.conv(x)


choosy = Choosy
number: Any = lambda: 7  # noqa: E731
text = "no module"


def raising() -> nn.Module:
    raise ZeroDivisionError("no luck")


def importing() -> nn.Module:
    raise ImportError("no_such_package is wanted")


def wanting(width: int) -> nn.Module:
    return nn.Linear(width, width)


def leaving() -> nn.Module:
    sys.exit(0)


class LeftInForward(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        sys.exit(0)


left_in_forward = LeftInForward


def lazy() -> nn.Module:
    return nn.LazyLinear(3)


class Printing(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        print("forward")
        return super().forward(x)


def printing() -> tuple[nn.Module, Tensor]:
    print("made")
    return Printing(4, 3), torch.zeros(7, 4)


class Checkpointed(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return checkpoint(super().forward, x, use_reentrant=True)


def checkpointed() -> tuple[nn.Module, Tensor]:
    """Forward, again in the backward, and two gradients."""
    return Checkpointed(8, 8), torch.zeros(2, 8, requires_grad=True)


idle = nn.Identity


def empty() -> tuple[nn.Module, Tensor]:
    """No rows."""
    return nn.Linear(8, 8), torch.zeros(0, 8)
