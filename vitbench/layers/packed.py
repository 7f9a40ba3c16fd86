"""The program of attention in packed sequences."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import MaskedSelfAttention, layers
from vitbench.operators.packed import Packed


@layers.add
class PackedAttention(MaskedSelfAttention):
    """All tokens of a sequence in one group, under a mask that is True between tokens of one image.

    Tokens lie row by row over the whole grid, so each of its rows holds a piece of every image.
    """

    name = "packed"
    operator: Packed

    def made(self) -> Tensor:
        operator, shape = self.operator, self.shape
        ends = (torch.arange(operator.images) + 1).cumsum(0) * (shape.width // operator.shares)
        image = (torch.arange(shape.width)[:, None] >= ends).sum(1).repeat(shape.height)  # (N,), by the column
        together: Tensor = image[:, None] == image
        return together[None, None, None]
