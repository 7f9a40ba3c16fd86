"""XCiT's cross-covariance attention: features attend to features, over all tokens."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Xca(Operator):
    """Cross-covariance attention among the d features of a head, linear in the tokens.

    4ND^2 + 2ND^2 / H MACs an image. softmax(K^T Q / tau): queries and keys are features, vectors over all N tokens,
    prefix tokens among them, scaled to length 1.
    """

    name = "xca"
    paper = "El-Nouby et al. 2021 (XCiT), section 3.2, equation 2"

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        d = shape.head_dim
        return (Attention(shape.batch, 1, shape.heads, d, d, shape.tokens, scale=1.0),)

    def around(self, shape: Shape) -> Cost:
        features = shape.batch * shape.tokens * shape.dim
        # norms of q and k, temperature of q
        return self_projections(shape) + Cost(elementwise=3 * features, parameters=shape.heads)
