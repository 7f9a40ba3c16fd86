"""The program of global motion aggregation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
from vitbench.operators.gma import Gma
from vitbench.shape import Shape


@layers.add
class MotionAggregation(Layer):
    """Motion of all pixels, weighted by how alike their context is, added to their own (Jiang 2021, equations 1 to 3).

    State: qk (2D, D), rows in the order q, k, head by head; v (D, D); alpha (1).
    """

    name = "gma"

    def __init__(self, operator: Gma, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.qk = nn.Linear(shape.dim, 2 * shape.dim, bias=False)
        self.v = nn.Linear(shape.dim, shape.dim, bias=False)
        self.alpha = nn.Parameter(torch.empty(1))
        nn.init.uniform_(self.alpha, 0.5, 1.5)

    def forward(self, context: Tensor, motion: Tensor) -> Tensor:
        """(B, N, D) twice -> (B, N, D)."""
        q, k = split_heads(self.qk(context).unsqueeze(1), self.shape.heads, 2)
        (v,) = split_heads(self.v(motion).unsqueeze(1), self.shape.heads)
        return torch.addcmul(motion, self.alpha, join_heads(self.attend(q, k, v)).squeeze(1))
