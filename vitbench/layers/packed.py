"""The program of attention in packed sequences."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.packed import Packed
from vitbench.shape import Shape


@layers.add
class PackedAttention(SelfAttention):
    """All tokens of a sequence in one group, under a mask that is True between tokens of one image.

    Tokens lie row by row over the whole grid, so each of its rows holds a piece of every image.
    """

    name = "packed"
    together: Tensor

    def __init__(self, operator: Packed, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        ends = (torch.arange(operator.images) + 1).cumsum(0) * (shape.width // operator.shares)
        image = (torch.arange(shape.width)[:, None] >= ends).sum(1).repeat(shape.height)  # (N,), by the column
        self.register_buffer("together", (image[:, None] == image)[None, None, None], persistent=False)

    def masks(self) -> tuple[Tensor]:
        return (self.together,)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1), mask=self.together).squeeze(1)
