"""The program of multi-head cross-attention."""

from __future__ import annotations

from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.cross import Cross
from vitbench.shape import Shape


@layers.add
class CrossAttention(Layer):
    """x (B, N, D) attends to memory (B, M, D), all in one group.

    State: q (D, D); kv (2D, D), rows in the order k, v, head by head; proj (D, D).
    """

    name = "cross"

    def __init__(self, operator: Cross, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.q = nn.Linear(shape.dim, shape.dim)
        self.kv = nn.Linear(shape.dim, 2 * shape.dim)
        self.proj = nn.Linear(shape.dim, shape.dim)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        (b, n, _), m, h = x.shape, memory.shape[1], self.shape.heads
        q = self.q(x).view(b, 1, n, h, -1).transpose(2, 3)
        k, v = self.kv(memory).view(b, 1, m, 2, h, -1).permute(3, 0, 1, 4, 2, 5)
        mixed = self.attend(q, k, v)  # (B, 1, H, N, d)
        result: Tensor = self.proj(mixed.transpose(2, 3).reshape(b, n, -1))
        return result
