"""The program of RAFT's correlation volume."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import avg_pool2d

from vitbench.layer import Layer, layers
from vitbench.operators.correlation import Correlation


@layers.add
class CorrelationPyramid(Layer):
    """All pairs of pixels of two images, then again and again a 2x2 average over the second (Teed 2020, figure 2)."""

    name = "correlation"
    operator: Correlation

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
        """(B, N, D) twice -> for each level (B, N, pixels of the second image)."""
        volume = (first * self.shape.dim**-0.5) @ second.transpose(1, 2)
        maps = [volume.unflatten(2, (self.shape.height, self.shape.width))]
        for _ in range(1, self.operator.levels):
            maps.append(avg_pool2d(maps[-1], 2))
        return tuple(each.flatten(2) for each in maps)
