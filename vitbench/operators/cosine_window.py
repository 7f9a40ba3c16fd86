"""Swin v2's window attention: cosine scores, a learned temperature, positions from an MLP."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number, ever_positive
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, grid_only, operators
from vitbench.shape import Shape
from vitbench.windows import Axis, axis

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

    window: int
    shift: int = 0

    def axes(self, shape: Shape) -> tuple[Axis, Axis]:
        """Rows and columns of the grid, cut into windows."""
        return axis(shape.height, self.window, self.shift), axis(shape.width, self.window, self.shift)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        rows, columns = self.axes(shape)
        groups, tokens = rows.windows * columns.windows, rows.window * columns.window
        return (
            Attention(
                shape.batch, groups, shape.heads, tokens, tokens, shape.head_dim,
                bias=(1, 1, shape.heads, tokens, tokens),
                mask=(1, groups, 1, tokens, tokens) if ever_positive(rows.shift + columns.shift) else None,
                scale=1.0,
                useful=shape.batch * rows.allowed_pairs() * columns.allowed_pairs(),
            ),
        )  # fmt: skip

    def unsupported(self, shape: Shape) -> str | None:
        if self.window < 1:
            return f"window {self.window} is less than 1"
        if not 0 <= self.shift < self.window:
            return f"shift {self.shift} is not within 0 and window {self.window}"
        return grid_only("cosine_window cuts", shape)

    def around(self, shape: Shape) -> Cost:
        rows, columns = self.axes(shape)
        padded, dim, heads = shape.batch * rows.padded * columns.padded, shape.dim, shape.heads
        offsets = self.offsets(shape)
        return Cost(
            macs={
                "qkv": 3 * padded * dim**2,
                "proj": padded * dim**2,
                "cpb": offsets * (2 + heads) * HIDDEN,
            },
            constant={"cpb": offsets * 2 * HIDDEN},  # no one takes the gradient of an offset
            # biases of q, v and proj; q and k normalised, q over its temperature; the MLP's bias, ReLU and sigmoid
            elementwise=(3 + 3) * padded * dim + offsets * (2 * HIDDEN + heads),
            parameters=4 * dim**2 + 3 * dim + heads + (2 + 1 + heads) * HIDDEN,
        )

    def offsets(self, shape: Shape) -> Number:
        """How many offsets there are between two tokens of a window."""
        rows, columns = self.axes(shape)
        return (2 * rows.window - 1) * (2 * columns.window - 1)
