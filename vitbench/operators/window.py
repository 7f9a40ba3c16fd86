"""Swin's window attention: tokens attend within M x M windows, shifted in every other layer."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import projections
from vitbench.shape import Shape
from vitbench.windows import Windows, refused, windows


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
    prefixed = False

    window: int
    shift: int = 0

    def axes(self, shape: Shape) -> Windows:
        return windows(shape, self.window, self.shift)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        axes = self.axes(shape)
        return (axes.attention(shape, bias=(1, 1, shape.heads, axes.inside, axes.inside)),)

    def held(self, shape: Shape) -> int:
        rows, columns = axes = self.axes(shape)
        padded, shifted = axes.padded, rows.shift > 0 or columns.shift > 0
        in_order = columns.windows == 1 or rows.window == 1  # then cutting into windows moves no token
        as_it_is = in_order and not shifted and padded == shape.height * shape.width
        return 0 if as_it_is else int(shape.batch * padded * shape.dim)

    def unsupported(self, shape: Shape) -> str | None:
        return refused(self.window, self.shift)

    def around(self, shape: Shape) -> Cost:
        axes = self.axes(shape)
        padded = shape.batch * axes.padded
        return projections(padded, padded, shape.dim) + Cost(parameters=axes.offsets * shape.heads)  # its table
