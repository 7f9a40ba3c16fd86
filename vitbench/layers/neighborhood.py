"""The program of NAT's neighborhood attention, its keys and values gathered."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.neighborhood import Neighborhood
from vitbench.partition import bias_of
from vitbench.shape import Shape


@layers.add
class NeighborhoodAttention(SelfAttention):
    """One group a token: its query, the keys and values of its neighborhood (Hassani 2023, equations 2 to 4).

    State: qkv, proj, table ((2k - 1)^2, H).
    """

    name = "neighborhood"
    places: Tensor
    index: Tensor

    def __init__(self, operator: Neighborhood, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        kernel, heads = operator.kernel, shape.heads
        self.table = nn.Parameter(torch.empty((2 * kernel - 1) ** 2, heads))
        nn.init.normal_(self.table)
        (rows, down), (columns, right) = (neighbors(side, kernel) for side in (shape.height, shape.width))
        tokens = _pairs(rows, columns, shape.width)  # (N, k^2)
        by_head = torch.arange(heads)[:, None] * shape.tokens
        self.register_buffer("places", (by_head + tokens[:, None]).flatten(), persistent=False)
        self.register_buffer("index", _pairs(down, right, 2 * kernel - 1), persistent=False)

    def bias(self) -> Tensor:
        """(1, N, H, 1, k^2)."""
        return bias_of(self.table, self.index).transpose(0, 1).contiguous()[None, :, :, None]

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.heads(x.unsqueeze(1))
        k, v = self.gathered(qkv[1:])
        return self.joined(self.attend(qkv[0].transpose(1, 3), k, v, bias=self.bias())).squeeze(2)

    def gathered(self, x: Tensor) -> Tensor:
        """(2, B, 1, H, N, d) -> (2, B, N, H, k^2, d), in the order in which backends read it."""
        _, b, _, h, n, d = x.shape
        return x.reshape(2 * b, h * n, d).index_select(1, self.places).view(2, b, n, h, -1, d)


def neighbors(side: int, kernel: int) -> tuple[Tensor, Tensor]:
    """(side, k) twice: the places of each place's neighbors on an axis, and their offsets, of 0 to 2k - 2."""
    place = torch.arange(side)
    first = (place - kernel // 2).clamp(0, side - kernel)
    found = first[:, None] + torch.arange(kernel)
    return found, found - place[:, None] + kernel - 1


def _pairs(rows: Tensor, columns: Tensor, width: int) -> Tensor:
    """(h, k) and (w, k) -> (h w, k^2): row times width plus column, for each place and each of its neighbors."""
    return (rows[:, None, :, None] * width + columns[None, :, None, :]).flatten(2).flatten(0, 1)
