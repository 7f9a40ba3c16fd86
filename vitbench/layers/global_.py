"""The program of global multi-head self-attention."""

from __future__ import annotations

from torch import Tensor

from vitbench.layer import SelfAttention, layers


@layers.add
class GlobalAttention(SelfAttention):
    """All tokens in one group."""

    name = "global"

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1)).squeeze(1)
