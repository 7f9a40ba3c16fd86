"""The program of global multi-head self-attention."""

from __future__ import annotations

from torch import Tensor

from vitbench.layer import Layer, layers


@layers.add
class GlobalAttention(Layer):
    """All tokens in one group. State: qkv (3D, D), rows in the order q, k, v, head by head; proj (D, D)."""

    name = "global"

    def bias(self) -> Tensor | None:
        return None

    def mask(self) -> Tensor | None:
        return None

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1)).squeeze(1)
