"""DAT's deformable attention: keys and values are sampled at places that the queries move."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number, ceil_div, quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, odd, projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Deformable(Operator):
    """Attention to n points of a coarser grid, each moved by an offset learned from the query there.

    2NnD + 2ND^2 + 2nD^2 + (k^2 + 2) nD MACs an image (Xia 2022, section 3.2), the last term for the offsets; n points,
    N / r^2 where r divides the grid. The points are even, the outer ones on the grid's outer tokens as in the paper;
    the authors' code has them up to half a token further in.
    groups: G, each of D / G features with its own offsets. stride: r. kernel: k, side of the depthwise convolution in
    the offset network: 9, 7, 5, 3 in the four stages of the authors' code. offset_range: s; as in that code an offset
    is s tanh(...) over the side of the points' grid, where the tokens' grid is from -1 to 1.
    """

    name = "deformable"
    paper = "Xia et al. 2022 (Vision Transformer with Deformable Attention, DAT), section 3.2"
    prefixed = False

    groups: int
    stride: int = 1
    kernel: int = 5
    offset_range: int = 2

    def points(self, shape: Shape) -> tuple[Number, Number]:
        """Rows and columns of the points that are sampled."""
        return ceil_div(shape.height, self.stride), ceil_div(shape.width, self.stride)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        rows, columns = self.points(shape)
        bias = (shape.batch, 1, shape.heads, shape.tokens, rows * columns)
        return (Attention(shape.batch, 1, shape.heads, shape.tokens, rows * columns, shape.head_dim, bias=bias),)

    def unsupported(self, shape: Shape) -> str | None:
        least = at_least(1, groups=self.groups, stride=self.stride, offset_range=self.offset_range)
        if reason := least or odd(kernel=self.kernel):
            return reason
        if shape.heads % self.groups:
            return f"heads {shape.heads} is not divisible by {self.groups} groups of offsets"
        return None

    def around(self, shape: Shape) -> Cost:
        rows, columns = self.points(shape)
        sampled, dim = shape.batch * rows * columns, shape.dim
        width = quotient(dim, self.groups)
        points = Cost(
            macs={"offsets": (self.kernel**2 + 2) * sampled * dim},
            elementwise=3 * sampled * dim  # bias, norm and GELU of the offset network
            + 2 * sampled * self.groups  # tanh
            + sampled * dim  # sampled features
            + sampled * shape.tokens * shape.heads,  # sampled relative position bias
            parameters=(self.kernel**2 + 1 + 2 + 2) * width  # convolution, norm, projection to two offsets
            + (2 * shape.height - 1) * (2 * shape.width - 1) * shape.heads,
        )
        return projections(shape.batch * shape.tokens, sampled, dim) + points
