"""PVT's spatial-reduction attention: all tokens attend to a grid of keys and values reduced R x R."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class PooledKV(Operator):
    """Spatial-reduction attention (SRA): keys and values come from a grid that a strided convolution reduced.

    2ND^2 + (R^2 + 2) MD^2 + 2NMD MACs an image, with M reduced tokens; where R divides both sides, M = N / R^2.
    ratio: R, kernel and stride of the convolution. Rows and columns left over at the end of a side that R does not
    divide are queries, but no part of any key or value: there is no padding, as in the authors' code.
    """

    name = "pooled_kv"
    paper = "Wang et al. 2021 (PVT), section 3.3, equations 1 to 3; the convolution as in their code and PVT v2"
    prefixed = False

    ratio: int

    def keys(self, shape: Shape) -> Number:
        """M: tokens of the reduced grid of one image."""
        return (shape.height // self.ratio) * (shape.width // self.ratio)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (Attention(shape.batch, 1, shape.heads, shape.tokens, self.keys(shape), shape.head_dim),)

    def unsupported(self, shape: Shape) -> str | None:
        if self.ratio < 2:
            return f"ratio {self.ratio} reduces nothing, as global attention does; expected 2 or more"
        if self.ratio > min(shape.height, shape.width):
            return f"ratio {self.ratio} leaves no key of a grid of {shape.height} x {shape.width} tokens"
        return None

    def around(self, shape: Shape) -> Cost:
        dim, area = shape.dim, self.ratio**2
        tokens, reduced = shape.batch * shape.tokens, shape.batch * self.keys(shape)
        reduction = Cost(
            macs={"reduction": reduced * area * dim**2},
            elementwise=2 * reduced * dim,  # bias, norm
            parameters=area * dim**2 + dim + 2 * dim,
        )
        return reduction + projections(tokens, reduced, dim)
