"""The program of attention in a padded batch."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import MaskedSelfAttention, layers
from vitbench.operators.padding import Padding


@layers.add
class PaddingAttention(MaskedSelfAttention):
    """All tokens of an image in one group, padding masked as keys: a mask for each image, one row for all its queries.

    What stands in the padding of x is projected and gives rows of its own, which whoever uses the result leaves out.
    """

    name = "padding"
    operator: Padding

    def made(self) -> Tensor:
        operator, shape = self.operator, self.shape
        widths = (torch.arange(shape.batch) % operator.images + 1) * (shape.width // operator.images)
        real: Tensor = torch.arange(shape.width) < widths[:, None]  # (B, w)
        return real[:, None].expand(-1, shape.height, -1).flatten(1)[:, None, None, None].contiguous()
