"""The program of FAVOR+ attention."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.performer import Performer
from vitbench.shape import Shape


@layers.add
class PerformerAttention(SelfAttention):
    """Q' (K'^T V) over Q' sum k', K' and Q' positive random features (Choromanski 2021, equations 4, 5 and 7).

    State: qkv, proj; projection (m, d), a buffer: w / d^(1/4), shared by the heads. That factor is the paper's on
    queries and keys, so that w q / d^(1/4) has the scores' 1 / sqrt(d).
    """

    name = "performer"
    projection: Tensor

    def __init__(self, operator: Performer, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.register_buffer("projection", orthogonal(operator.features, shape.head_dim) / shape.head_dim**0.25)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.heads(x.unsqueeze(1))
        v = qkv[2]
        q, k = self.features(qkv[:2])
        mixed = q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2).unsqueeze(-1))
        return self.joined(mixed).squeeze(1)

    def features(self, qk: Tensor) -> Tensor:
        """(2, B, 1, H, N, d) -> (2, B, 1, H, N, m): Q' and K', each up to a factor that cancels in the quotient.

        Such are a factor of one query and one of all keys of a head: so a query's exp(-|q|^2 / 2) is left out, and
        exponents are taken from their maxima, as in the authors' code. No feature exceeds 1 / sqrt(m), no sum leaves
        float16, and the code's epsilon is not needed. Exponents are float32 at least, as autocast has them: in bfloat16
        one of 8 is 3 % of its feature off.
        """
        projected = linear(qk, self.projection)
        exact = torch.promote_types(qk.dtype, torch.float32)
        half = qk[1].to(exact).square().sum(-1, keepdim=True) / (2 * qk.shape[-1] ** 0.5)  # |k|^2 / 2, (B, 1, H, N, 1)
        highest = projected.detach().amax(-1, keepdim=True).to(exact)
        level = (highest[1] - half.detach()).amax(-2, keepdim=True)
        offset = torch.stack((highest[0], half + level)) + log(projected.shape[-1]) / 2
        features: Tensor = (projected - offset).exp().to(qk.dtype)
        return features


def orthogonal(features: int, dim: int) -> Tensor:
    """(m, d): in every d rows orthogonal directions, with norms as of standard normal rows (section 2.4)."""
    blocks = [nn.init.orthogonal_(torch.empty(dim, dim)) for _ in range(-(-features // dim))]
    rows: Tensor = torch.cat(blocks)[:features] * torch.randn(features, dim).norm(dim=1, keepdim=True)
    return rows
