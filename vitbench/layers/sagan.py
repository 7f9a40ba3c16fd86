"""The program of SAGAN's self-attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.sagan import Sagan
from vitbench.partition import subsampled
from vitbench.shape import Shape


@layers.add
class SaganAttention(Layer):
    """y = gamma v(softmax(g(x) f(x)^T) h(x)) + x (Zhang 2019, equations 1 to 3): f gives the keys, g the queries.

    State: f, g (C/8, C), h (C/r, C), v (C, C/r), gamma (1).
    """

    name = "sagan"
    operator: Sagan

    def __init__(self, operator: Sagan, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        dim, value = shape.dim, shape.dim // operator.values
        self.f, self.g = nn.Linear(dim, dim // 8, bias=False), nn.Linear(dim, dim // 8, bias=False)
        self.h, self.v = nn.Linear(dim, value, bias=False), nn.Linear(value, dim, bias=False)
        self.gamma = nn.Parameter(torch.empty(1))
        nn.init.uniform_(self.gamma, 0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.g(x), self.f(x), self.h(x)
        if self.operator.subsample:
            k, v = (subsampled(each, self.shape.height, self.shape.width) for each in (k, v))
        out = self.attend(q[:, None, None], k[:, None, None], v[:, None, None], scale=1.0)[:, 0, 0]
        return torch.addcmul(x, self.gamma, self.v(out))
