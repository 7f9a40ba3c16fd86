"""The program of attention in a padded batch."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.padding import Padding
from vitbench.shape import Shape


@layers.add
class PaddingAttention(SelfAttention):
    """All tokens of an image in one group, padding masked as keys: a mask for each image, one row for all its queries.

    What stands in the padding of x is projected and gives rows of its own, which whoever uses the result leaves out.
    """

    name = "padding"
    real: Tensor

    def __init__(self, operator: Padding, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        widths = (torch.arange(shape.batch) % operator.images + 1) * (shape.width // operator.images)
        real = torch.arange(shape.width) < widths[:, None]  # (B, w)
        real = real[:, None].expand(-1, shape.height, -1).flatten(1)
        self.register_buffer("real", real[:, None, None, None], persistent=False)

    def masks(self) -> tuple[Tensor]:
        return (self.real,)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1), mask=self.real).squeeze(1)
