"""The program of global attention with two-dimensional rotary positions."""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.rope import Rope
from vitbench.shape import Shape

BASE = 100.0  # DINOv3's


@layers.add
class RopeAttention(SelfAttention):
    """Feature f of a head's first half and feature f of its second turn together, by one angle a token."""

    name = "rope"
    cos: Tensor
    sin: Tensor

    def __init__(self, operator: Rope, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        turns = angles(shape)
        self.register_buffer("cos", turns.cos(), persistent=False)
        self.register_buffer("sin", turns.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.heads(x.unsqueeze(1))
        q, k = self.turned(qkv[:2])
        return self.joined(self.attend(q, k, qkv[2])).squeeze(1)

    def turned(self, x: Tensor) -> Tensor:
        """(..., N, d) -> (..., N, d)."""
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * self.cos - second * self.sin, second * self.cos + first * self.sin), dim=-1)


def angles(shape: Shape) -> Tensor:
    """(N, d / 2), float64: 2 pi coordinate / period, d / 4 periods of the row, then as many of the column.

    Zero for prefix tokens: they stay as they are, and need not be cut off and put back.
    """
    steps = torch.arange(shape.head_dim // 4, dtype=torch.float64)
    periods = BASE ** (steps / (shape.head_dim // 4))
    centres = [(torch.arange(side, dtype=torch.float64) + 0.5) / side * 2 - 1 for side in (shape.height, shape.width)]
    grid = 2 * pi * torch.cartesian_prod(*centres)[:, :, None] / periods
    return torch.cat((grid.new_zeros(shape.prefix, shape.head_dim // 2), grid.flatten(1)))
