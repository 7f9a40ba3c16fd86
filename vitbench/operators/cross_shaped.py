"""CSWin's cross-shaped window attention: half of the heads in horizontal stripes, half in vertical ones."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_projections
from vitbench.shape import Shape

LEPE = 3  # side of the convolution over v, as in the authors' code


@operators.add
@dataclass(frozen=True)
class CrossShaped(Operator):
    """Attention in horizontal and vertical stripes at once, with locally enhanced positional encoding.

    hwC (4C + sw h + sw w) MACs an image (Dong 2022, section 3.2), and 9hwC of LePE, a depthwise convolution of v in
    each stripe. stripe: sw, rows of a horizontal stripe and columns of a vertical one.
    """

    name = "cross_shaped"
    paper = "Dong et al. 2022 (CSWin Transformer), sections 3.2 and 3.3, equations 2 to 5"
    prefixed = False

    stripe: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return tuple(
            Attention(
                shape.batch, quotient(side, self.stripe), quotient(shape.heads, 2),
                self.stripe * other, self.stripe * other, shape.head_dim,
            )
            for side, other in ((shape.height, shape.width), (shape.width, shape.height))
        )  # fmt: skip

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, stripe=self.stripe):
            return reason
        if shape.heads % 2:
            return f"heads {shape.heads} is not even: half of them attend in each direction"
        for side in ("height", "width"):
            if getattr(shape, side) % self.stripe:
                return f"{side} {getattr(shape, side)} is not divisible by stripe {self.stripe}"
        return None

    def around(self, shape: Shape) -> Cost:
        features = shape.batch * shape.tokens * shape.dim
        lepe = Cost(
            macs={"lepe": LEPE**2 * features},
            elementwise=2 * features,  # biases of the convolutions, and their sum with the mixed values
            parameters=(LEPE**2 + 1) * shape.dim,
        )
        return self_projections(shape) + lepe
