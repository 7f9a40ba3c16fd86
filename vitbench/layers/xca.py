"""The program of XCiT's cross-covariance attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.xca import Xca
from vitbench.shape import Shape


@layers.add
class XcaAttention(SelfAttention):
    """softmax(temperature q^ k^T) v with q^, k^, v of (d, N) a head (El-Nouby 2021, equation 2).

    State: qkv, proj, temperature (H), the inverse of the paper's tau, as in the authors' code.
    """

    name = "xca"

    def __init__(self, operator: Xca, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.temperature = nn.Parameter(torch.empty(shape.heads))
        nn.init.uniform_(self.temperature, 0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        # One copy, so that tokens lie side by side: norms and products run along them.
        q, k, v = self.heads(x.unsqueeze(1)).mT.contiguous()  # (B, 1, H, d, N) each
        q = normalize(q, dim=-1) * self.temperature[:, None, None]
        out = self.attend(q, normalize(k, dim=-1), v, scale=1.0)
        return self.joined(out.mT).squeeze(1)
