"""The program of additive self-attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.additive import Additive
from vitbench.shape import Shape


@layers.add
class AdditiveAttention(SelfAttention):
    """softmax(v^T tanh(q + k)) V in each head (Bahdanau 2015, appendix A.1.2).

    Holds (H, B, N, N, d) elements at once: such is the operator.
    State: qkv (W, U and the values' projection), v (H, d), proj.
    """

    name = "additive"

    def __init__(self, operator: Additive, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.v = nn.Parameter(torch.empty(shape.heads, shape.head_dim))
        # Scores of unit size; not Bahdanau's zeros, with which queries and keys would have no say.
        nn.init.normal_(self.v, std=shape.head_dim**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        (b, n, _), h = x.shape, self.shape.heads
        q, k, v = self.qkv(x).view(b, n, 3, h, -1).permute(2, 3, 0, 1, 4)  # (H, B, N, d) each
        hidden = (q.unsqueeze(3) + k.unsqueeze(2)).tanh_()
        scores = torch.bmm(hidden.flatten(1, 3), self.v.unsqueeze(-1)).view(h, b, n, n)
        mixed = scores.softmax(-1) @ v
        result: Tensor = self.proj(mixed.permute(1, 2, 0, 3).flatten(2))
        return result
