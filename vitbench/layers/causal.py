"""The program of causal self-attention."""

from __future__ import annotations

from torch import Tensor

from vitbench.layer import SelfAttention, layers


@layers.add
class CausalAttention(SelfAttention):
    """All tokens in one group; that none sees a later one is the backend's to do, which gets no mask for it."""

    name = "causal"

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1), causal=True).squeeze(1)
