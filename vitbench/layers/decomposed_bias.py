"""The program of attention with decomposed relative positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.decomposed_bias import DecomposedBias
from vitbench.partition import Partition
from vitbench.shape import Shape


@layers.add
class DecomposedBiasAttention(SelfAttention):
    """Attention inside each window, or of the whole grid, with the query's own bias (MViTv2, equation 4).

    State: qkv, proj, rel_pos_h (2 m_h - 1, d), rel_pos_w (2 m_w - 1, d), m_h x m_w tokens a window.
    """

    name = "decomposed_bias"
    down: Tensor
    right: Tensor

    def __init__(self, operator: DecomposedBias, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.windows = Partition(*operator.axes(shape))
        height, width = (axis.window for axis in self.windows)
        self.rel_pos_h = nn.Parameter(torch.empty(2 * height - 1, shape.head_dim))
        self.rel_pos_w = nn.Parameter(torch.empty(2 * width - 1, shape.head_dim))
        for table in (self.rel_pos_h, self.rel_pos_w):
            nn.init.normal_(table, std=shape.head_dim**-0.5)
        self.register_buffer("down", _offsets(height), persistent=False)
        self.register_buffer("right", _offsets(width), persistent=False)

    def bias(self, q: Tensor) -> Tensor:
        """q: (B, G, H, n, d), unscaled -> (B, G, H, n, n), n tokens of a window."""
        height, width = (axis.window for axis in self.windows)
        q = q.unflatten(3, (height, width))
        by_row = _along(3, q, self.rel_pos_h[self.down])
        by_column = _along(4, q, self.rel_pos_w[self.right])
        # Contiguous while they are small: their sum, of n x n entries, takes its layout from them.
        bias = by_row.contiguous().unsqueeze(-1) + by_column.contiguous().unsqueeze(-2)
        return bias.flatten(5, 6).flatten(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.windows.cut(x))
        return self.windows.join(self.joined(self.attend(q, k, v, bias=self.bias(q))))


def _along(axis: int, q: Tensor, table: Tensor) -> Tensor:
    """q: (B, G, H, r, c, d), table: (s, s, d), s the size of that axis of q -> (B, G, H, r, c, s).

    One batched product, as einsum has it, whose MACs fvcore reads from a text of four digits.
    """
    moved = q.movedim(axis, 0)
    products = moved.flatten(1, 4) @ table.mT
    return products.view(*moved.shape[:-1], -1).movedim(0, axis)


def _offsets(side: int) -> Tensor:
    """(side, side): for each query and key of an axis the row of their offset in its table."""
    place = torch.arange(side)
    return place[:, None] - place[None, :] + side - 1
