"""NAT's neighborhood attention: each token attends to the k x k tokens around it."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import odd, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Neighborhood(Operator):
    """Each token attends to its own k x k neighborhood, moved inward at the borders, with a relative position bias.

    3hwd^2 + 2hwdk^2 MACs an image (Hassani 2023, table 1), and hwd^2 for the projection of the result.
    Every token is a group of one query and k^2 keys. Without NATTEN's own kernel these keys and values are gathered:
    memory holds k and v k^2 times over.
    The bias is not divided by sqrt(d), as in the authors' code.
    kernel: k, tokens a side, odd.
    """

    name = "neighborhood"
    paper = "Hassani et al. 2023 (Neighborhood Attention Transformer), section 3.1, equations 2 to 4"
    prefixed = False

    kernel: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        tokens, neighbors = shape.tokens, self.kernel**2
        bias = (1, tokens, shape.heads, 1, neighbors)
        return (Attention(shape.batch, tokens, shape.heads, 1, neighbors, shape.head_dim, bias=bias),)

    def unsupported(self, shape: Shape) -> str | None:
        if reason := odd(kernel=self.kernel):
            return reason
        if self.kernel > min(shape.height, shape.width):
            return f"kernel {self.kernel} is larger than a side of the {shape.height} x {shape.width} grid"
        return None

    def around(self, shape: Shape) -> Cost:
        table = (2 * self.kernel - 1) ** 2 * shape.heads
        return self_projections(shape) + Cost(parameters=table)
