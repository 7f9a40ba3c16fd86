"""The program of CSWin's cross-shaped window attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.cross_shaped import LEPE, CrossShaped
from vitbench.shape import Shape


class Stripes(nn.Module):
    """Attention of some heads inside stripes of rows x columns tokens, plus LePE (Dong 2022, section 3.3).

    State: lepe, a depthwise convolution of v that sees zeros beyond its stripe.
    """

    def __init__(self, shape: Shape, rows: int, columns: int, heads: int, attend: Attend) -> None:
        super().__init__()
        self.rows, self.columns, self.attend = rows, columns, attend
        width = heads * shape.head_dim
        self.lepe = nn.Conv2d(width, width, LEPE, padding=LEPE // 2, groups=width)

    def forward(self, qkv: Tensor) -> Tensor:
        """q, k, v of a grid (B, h, w, 3, H', d) -> (B, h, w, H' d)."""
        b, h, w, _, heads, d = qkv.shape
        down, across = h // self.rows, w // self.columns
        cut = qkv.reshape(b, down, self.rows, across, self.columns, 3, heads, d).permute(5, 0, 1, 3, 6, 2, 4, 7)
        q, k, v = cut.reshape(3, b, down * across, heads, self.rows * self.columns, d)
        out = self.attend(q, k, v) + self.encoding(v)
        out = out.view(b, down, across, heads, self.rows, self.columns, d).permute(0, 1, 4, 2, 5, 3, 6)
        return out.reshape(b, h, w, heads * d)

    def encoding(self, v: Tensor) -> Tensor:
        """(B, G, H', n, d) -> the same: the convolution of each stripe on its own."""
        b, g, heads, n, d = v.shape
        planes = v.mT.reshape(b * g, heads * d, self.rows, self.columns)
        encoding: Tensor = self.lepe(planes)
        return encoding.view(b, g, heads, d, n).mT


@layers.add
class CrossShapedAttention(SelfAttention):
    """Horizontal stripes for the first half of the heads, vertical ones for the rest (Dong 2022, section 3.2).

    State: qkv, proj, horizontal.lepe and vertical.lepe (D/2, 1, 3, 3).
    """

    name = "cross_shaped"

    def __init__(self, operator: CrossShaped, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        half = shape.heads // 2
        self.horizontal = Stripes(shape, operator.stripe, shape.width, half, attend)
        self.vertical = Stripes(shape, shape.height, operator.stripe, half, attend)

    def forward(self, x: Tensor) -> Tensor:
        shape = self.shape
        qkv = self.qkv(x).view(-1, shape.height, shape.width, 3, shape.heads, shape.head_dim)
        first, second = qkv.chunk(2, dim=-2)
        out: Tensor = self.proj(torch.cat((self.horizontal(first), self.vertical(second)), dim=-1).flatten(1, 2))
        return out
