"""The program of multi-head cross-attention."""

from __future__ import annotations

from torch import Tensor, nn

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
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
        (q,) = split_heads(self.q(x).unsqueeze(1), self.shape.heads)
        k, v = split_heads(self.kv(memory).unsqueeze(1), self.shape.heads, 2)
        result: Tensor = self.proj(join_heads(self.attend(q, k, v)).squeeze(1))
        return result
