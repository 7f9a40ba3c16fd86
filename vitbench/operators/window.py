"""Swin's window attention: tokens attend within M x M windows, shifted in every other layer."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import ever_positive
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, grid_only, operators
from vitbench.shape import Shape
from vitbench.windows import Axis, axis


@operators.add
@dataclass(frozen=True)
class Window(Operator):
    """(Shifted) window multi-head self-attention with a learned relative position bias.

    4hwC^2 + 2M^2 hwC MACs an image (Liu 2021, equation 2), where the grid is padded up to whole windows first:
    qkv, scores, mix and proj run on the padded grid, as in the authors' code.
    window: M, tokens a side. shift: 0, or M // 2 for the shifted layers.
    """

    name = "window"
    paper = "Liu et al. 2021 (Swin Transformer), section 3.2, equations 2 and 4"

    window: int
    shift: int = 0

    def axes(self, shape: Shape) -> tuple[Axis, Axis]:
        """Rows and columns of the grid, cut into windows."""
        return axis(shape.height, self.window, self.shift), axis(shape.width, self.window, self.shift)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        rows, columns = self.axes(shape)
        groups, tokens = rows.windows * columns.windows, rows.window * columns.window
        shifted = ever_positive(rows.shift + columns.shift)
        return (
            Attention(
                shape.batch, groups, shape.heads, tokens, tokens, shape.head_dim,
                bias=(1, 1, shape.heads, tokens, tokens),
                mask=(1, groups, 1, tokens, tokens) if shifted else None,
                useful=shape.batch * rows.allowed_pairs() * columns.allowed_pairs(),
            ),
        )  # fmt: skip

    def held(self, shape: Shape) -> int:
        rows, columns = self.axes(shape)
        padded, shifted = rows.padded * columns.padded, rows.shift > 0 or columns.shift > 0
        in_order = columns.windows == 1 or rows.window == 1  # then cutting into windows moves no token
        as_it_is = in_order and not shifted and padded == shape.height * shape.width
        return 0 if as_it_is else int(shape.batch * padded * shape.dim)

    def unsupported(self, shape: Shape) -> str | None:
        if self.window < 1:
            return f"window {self.window} is less than 1"
        if not 0 <= self.shift < self.window:
            return f"shift {self.shift} is not within 0 and window {self.window}"
        return grid_only("windows cut", shape)

    def around(self, shape: Shape) -> Cost:
        rows, columns = self.axes(shape)
        padded, dim = shape.batch * rows.padded * columns.padded, shape.dim
        table = (2 * rows.window - 1) * (2 * columns.window - 1) * shape.heads
        return Cost(
            macs={"qkv": 3 * padded * dim**2, "proj": padded * dim**2},
            elementwise=4 * padded * dim,  # biases
            parameters=4 * dim**2 + 4 * dim + table,
        )
