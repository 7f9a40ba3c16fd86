"""The program of the non-local block."""

from __future__ import annotations

from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.non_local import NonLocal
from vitbench.partition import subsampled
from vitbench.shape import Shape


@layers.add
class NonLocalBlock(Layer):
    """Figure 2 of Wang 2018: theta, phi and g to half the channels, all pairs of positions, z back, residual.

    State: theta (C/2, C); phi_g (C, C), rows in the order phi, g; z (C, C/2). If gaussian: g (C/2, C) and z alone.
    """

    name = "non_local"
    operator: NonLocal

    def __init__(self, operator: NonLocal, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        dim, half = shape.dim, shape.dim // 2
        if operator.kind != "gaussian":
            self.theta, self.phi_g = nn.Linear(dim, half), nn.Linear(dim, 2 * half)
        else:
            self.g = nn.Linear(dim, half)
        self.z = nn.Linear(half, dim)

    def forward(self, x: Tensor) -> Tensor:
        frame = self.shape.height // self.operator.frames, self.shape.width
        seen = subsampled(x, *frame) if self.operator.subsample else x
        if self.operator.kind != "gaussian":
            y = self.mixed(self.theta(x), *self.phi_g(seen).chunk(2, dim=-1))
        else:
            y = self.mixed(x, seen, self.g(seen))
        z: Tensor = x + self.z(y)
        return z

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q: (B, N, c); k: (B, M, c); v: (B, M, C/2) -> (B, N, C/2)."""
        if self.operator.kind != "dot":
            return self.attend(q[:, None, None], k[:, None, None], v[:, None, None], scale=1.0)[:, 0, 0]
        return (q / k.shape[1]) @ k.transpose(1, 2) @ v  # divided first: fewer elements, and none overflows in halves
