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
        nn.init.normal_(self.v, std=shape.head_dim**-0.5)  # scores of unit size

    def forward(self, x: Tensor) -> Tensor:
        (b, n, _), h = x.shape, self.shape.heads
        q, k, v = self.heads(x.unsqueeze(1)).squeeze(2).transpose(1, 2)  # (H, B, N, d) each
        hidden = (q.unsqueeze(3) + k.unsqueeze(2)).tanh_()
        scores = torch.bmm(hidden.flatten(1, 3), self.v.unsqueeze(-1)).view(h, b, n, n)
        mixed = scores.softmax(-1) @ v
        return self.joined(mixed.transpose(0, 1).unsqueeze(1)).squeeze(1)
