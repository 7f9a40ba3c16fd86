"""The program of Linformer's self-attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers, split_heads
from vitbench.operators.linformer import Linformer
from vitbench.shape import Shape


@layers.add
class LinformerAttention(SelfAttention):
    """N queries attend to the k rows of E K and F V (Wang 2020, equation 7).

    State: qkv, proj, E (k, N), F (k, N).
    """

    name = "linformer"

    def __init__(self, operator: Linformer, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.E = nn.Parameter(torch.empty(operator.keys, shape.tokens))
        self.F = nn.Parameter(torch.empty(operator.keys, shape.tokens))
        for table in (self.E, self.F):
            nn.init.normal_(table, std=operator.keys**-0.5)  # the R of theorem 2

    def forward(self, x: Tensor) -> Tensor:
        b = len(x)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        # Expanded by hand: fvcore counts a product that broadcasts for one image alone.
        k = self.E.expand(b, -1, -1) @ k
        v = self.F.expand(b, -1, -1) @ v
        q, k, v = (split_heads(part.unsqueeze(1), self.shape.heads)[0] for part in (q, k, v))
        return self.joined(self.attend(q, k, v)).squeeze(1)
