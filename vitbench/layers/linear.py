"""The program of linear attention with elu + 1 features."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import elu

from vitbench.layer import SelfAttention, layers


@layers.add
class LinearAttention(SelfAttention):
    """phi(Q) (phi(K)^T V) over phi(Q) sum phi(k) (Katharopoulos 2020, equations 5 and 6).

    State: qkv, proj.
    """

    name = "linear"

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x.unsqueeze(1))
        q, k = elu(q) + 1, elu(k) + 1
        # Both sums over the tokens as means, which cancels: phi(q) sum phi(k) is about dN, too large for float16. So
        # all stays in the inputs' dtype. The authors' code adds 1e-6 to the divisor; beside d that would vanish.
        kv = k.transpose(-2, -1) @ v / k.shape[-2]  # (B, 1, H, d, d)
        mean = k.mean(-2).unsqueeze(-1)  # (B, 1, H, d, 1)
        return self.joined(q @ kv / (q @ mean)).squeeze(1)
