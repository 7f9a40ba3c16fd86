"""The program of global motion aggregation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
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
        nn.init.uniform_(self.alpha, 0.5, 1.5)  # not GMA's 0: attention that is wrong must be seen to be wrong

    def forward(self, context: Tensor, motion: Tensor) -> Tensor:
        """(B, N, D) twice -> (B, N, D)."""
        q, k = self.heads(self.qk(context), 2)
        (v,) = self.heads(self.v(motion), 1)
        gathered = self.attend(q, k, v).squeeze(1).transpose(1, 2).flatten(2)
        return torch.addcmul(motion, self.alpha, gathered)

    def heads(self, x: Tensor, count: int) -> Tensor:
        """(B, N, count D) -> (count, B, 1, H, N, d)."""
        b, n, _ = x.shape
        return x.view(b, 1, n, count, self.shape.heads, -1).permute(3, 0, 1, 4, 2, 5)
