"""The program of global attention that also gives its weights."""

from __future__ import annotations

from torch import Tensor

from vitbench.layer import SelfAttention, layers


@layers.add
class AttentionWithMaps(SelfAttention):
    """(B, N, D) -> (B, N, D) and weights (B, H, N, N)."""

    name = "maps"

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(x.unsqueeze(1))
        if self.operator.attentions(self.shape):
            out = self.attend(q, k, v)
            return self.joined(out).squeeze(1), self.weights(q, k).squeeze(1)
        weights = self.weights(q, k)
        return self.joined(weights @ v).squeeze(1), weights.squeeze(1)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        """(B, 1, H, N, N)."""
        scores: Tensor = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        return scores.softmax(-1)
