"""The program of PVT's spatial-reduction attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
from vitbench.operators.pooled_kv import PooledKV
from vitbench.shape import Shape


@layers.add
class PooledKVAttention(Layer):
    """q of every token; k and v of the reduced grid (Wang 2021, equations 1 to 3).

    State: q (D, D), reduction (D, D, R, R), norm, kv (2D, D), rows in the order k, v, head by head; proj (D, D).
    """

    name = "pooled_kv"

    def __init__(self, operator: PooledKV, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        dim, ratio = shape.dim, operator.ratio
        self.q = nn.Linear(dim, dim)
        reduction = nn.Conv2d(dim, dim, ratio, stride=ratio)
        self.reduction = reduction.to(memory_format=torch.channels_last)  # as the tokens lie, else each call rearranges
        self.norm = nn.LayerNorm(dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        (q,) = split_heads(self.q(x).unsqueeze(1), self.shape.heads)
        k, v = split_heads(self.kv(self.reduced(x)).unsqueeze(1), self.shape.heads, 2)
        out: Tensor = self.proj(join_heads(self.attend(q, k, v)).squeeze(1))
        return out

    def reduced(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B, M, D)."""
        grid = x.transpose(1, 2).unflatten(-1, (self.shape.height, self.shape.width))
        result: Tensor = self.norm(self.reduction(grid).flatten(2).transpose(1, 2))
        return result
