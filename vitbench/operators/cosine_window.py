"""Swin v2's window attention: cosine scores, a learned temperature, positions from an MLP."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import projections
from vitbench.shape import Shape
from vitbench.windows import Windows, refused, windows

HIDDEN = 512  # width of the MLP that gives the position bias, as in the authors' code


@operators.add
@dataclass(frozen=True)
class CosineWindow(Operator):
    """(Shifted) window attention by cosine over a learned temperature, log-spaced continuous position bias.

    4hwC^2 + 2M^2 hwC MACs an image, as Swin's, and once a call the MLP of the bias over (2m_h - 1)(2m_w - 1) offsets,
    2 -> 512 -> heads: cpb. Padded up to whole windows as Swin's; keys have no bias, so those of padding are zero.
    The paper's block has its norms after the attention and the MLP; the block here is pre-norm and costs the same.
    window: M, tokens a side. shift: 0, or M // 2 for the shifted layers.
    """

    name = "cosine_window"
    paper = "Liu et al. 2022 (Swin Transformer V2), sections 3.2 and 3.3, equations 2 to 4"
    prefixed = False

    window: int
    shift: int = 0

    def axes(self, shape: Shape) -> Windows:
        return windows(shape, self.window, self.shift)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        axes = self.axes(shape)
        return (axes.attention(shape, bias=(1, 1, shape.heads, axes.inside, axes.inside), scale=1.0),)

    def unsupported(self, shape: Shape) -> str | None:
        return refused(self.window, self.shift)

    def around(self, shape: Shape) -> Cost:
        axes = self.axes(shape)
        padded, offsets, dim, heads = shape.batch * axes.padded, axes.offsets, shape.dim, shape.heads
        rest = Cost(
            macs={"cpb": offsets * (2 + heads) * HIDDEN},
            constant={"cpb": offsets * 2 * HIDDEN},  # no one takes the gradient of an offset
            # q and k normalised, q over its temperature, less the bias of k; the MLP's bias, ReLU and sigmoid
            elementwise=(3 - 1) * padded * dim + offsets * (2 * HIDDEN + heads),
            parameters=heads - dim + (2 + 1 + heads) * HIDDEN,
        )
        return projections(padded, padded, dim) + rest
