"""A k x k convolution over the grid of tokens: what attention is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import odd, switch
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Convolution(Operator):
    """Convolution over the token grid, dense or depthwise, same size out: no attention, for comparison.

    N k^2 D^2 MACs an image, depthwise N k^2 D. Products with the zeros beside the grid are among them, as every counter
    has them. kernel: k, odd. depthwise: 1 gives each feature a filter of its own (ConvNeXt: kernel 7), 0 mixes all.
    """

    name = "convolution"
    paper = "He et al. 2016 (ResNet), section 3.3 (dense 3x3); Liu et al. 2022 (ConvNeXt), section 2.5 (depthwise 7x7)"
    scopes = ("layer", "block")
    prefixed = False

    kernel: int
    depthwise: int = 0

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return ()

    def unsupported(self, shape: Shape) -> str | None:
        return odd(kernel=self.kernel) or switch(depthwise=self.depthwise)

    def around(self, shape: Shape) -> Cost:
        tokens, dim = shape.batch * shape.tokens, shape.dim
        weights = self.kernel**2 * (dim if self.depthwise else dim**2)
        return Cost(
            macs={"conv": tokens * weights},
            elementwise=tokens * dim,  # bias
            parameters=weights + dim,
        )
