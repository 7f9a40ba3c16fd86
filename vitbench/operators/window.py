"""Swin's window attention: tokens attend within M x M windows, shifted in every other layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vitbench.arithmetic import Number, ceil_div, larger, smaller
from vitbench.cost import Cost
from vitbench.operator import Groups, Operator, operators
from vitbench.shape import Shape


@dataclass(frozen=True)
class Axis:
    """One side of the grid cut into windows. All in tokens.

    A side not longer than the window is one window, unshifted, side by side: timm's rule. The authors' code has one
    square window and drops both shifts where either side fits; on square grids the two are the same. Longer sides are
    padded up to whole windows.
    """

    side: Number
    window: Number
    shift: Number

    @property
    def windows(self) -> Number:
        return ceil_div(self.side, self.window)

    @property
    def padded(self) -> Number:
        return self.windows * self.window

    def allowed_pairs(self) -> Number:
        """Pairs of real (not padding) positions that share a window and a region of the shift mask.

        Windows lie at shift + k M; the last one holds the end of the side (window - shift positions) and,
        wrapped round, its beginning (shift positions), which must not see each other. Padding sits at the end:
        it empties the end's part of the last window first, then the window before it.
        """
        m, s = self.window, self.shift
        padding = self.padded - self.side
        tail = larger(m - s - padding, 0)
        before = m - larger(padding - (m - s), 0)
        wrapped = (self.windows - 2) * m * m + before * before + tail * tail + s * s
        return smaller(s, 1) * wrapped + (1 - smaller(s, 1)) * self._unshifted_pairs()

    def _unshifted_pairs(self) -> Number:
        rest = self.window - (self.padded - self.side)
        return (self.windows - 1) * self.window**2 + rest * rest


def axis(side: Number, window: Number, shift: Number) -> Axis:
    """Fit a window to a side: min(window, side), and no shift where one window covers the side."""
    fitted = smaller(window, side)
    several = smaller(ceil_div(side, fitted) - 1, 1)  # 1 where there are two windows or more, else 0
    return Axis(side, fitted, shift * several)


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
    has_bias = True

    window: int
    shift: int = 0

    def axes(self, shape: Shape) -> tuple[Axis, Axis]:
        """Rows and columns of the grid, cut into windows."""
        return axis(shape.height, self.window, self.shift), axis(shape.width, self.window, self.shift)

    def groups(self, shape: Shape) -> Groups:
        rows, columns = self.axes(shape)
        return Groups(rows.windows * columns.windows, rows.window * columns.window)

    def padded(self, shape: Shape) -> Shape:
        """The shape with its grid padded up to whole windows."""
        rows, columns = self.axes(shape)
        return replace(shape, height=rows.padded, width=columns.padded)

    def held(self, shape: Shape) -> int:
        rows, columns = self.axes(shape)
        padded, shifted = rows.padded * columns.padded, self.masked(shape)
        in_order = columns.windows == 1 or rows.window == 1  # then cutting into windows moves no token
        as_it_is = in_order and not shifted and padded == shape.height * shape.width
        return 0 if as_it_is else int(shape.batch * padded * shape.dim)

    def masked(self, shape: Shape) -> bool:
        return any(bool(axis.shift > 0) for axis in self.axes(shape))

    def unsupported(self, shape: Shape) -> str | None:
        if self.window < 1:
            return f"window {self.window} is less than 1"
        if not 0 <= self.shift < self.window:
            return f"shift {self.shift} is not within 0 and window {self.window}"
        if shape.prefix:
            return f"windows cut a grid and have no place for {shape.prefix} prefix tokens"
        return None

    def core(self, shape: Shape) -> Cost:
        batch, dim, heads = shape.batch, shape.dim, shape.heads
        count, tokens = self.groups(shape)
        padded = batch * count * tokens
        pairs = heads * padded * tokens
        rows, columns = self.axes(shape)
        return Cost(
            macs={"scores": padded * tokens * dim, "mix": padded * tokens * dim},
            score_elements=pairs,
            useful_score_elements=batch * heads * rows.allowed_pairs() * columns.allowed_pairs(),
            elementwise=2 * pairs,  # bias, softmax
            moved_elements=4 * padded * dim + heads * tokens**2,  # q, k, v, output; bias
        )

    def projections(self, shape: Shape) -> Cost:
        count, tokens = self.groups(shape)
        padded, dim = shape.batch * count * tokens, shape.dim
        rows, columns = self.axes(shape)
        table = (2 * rows.window - 1) * (2 * columns.window - 1) * shape.heads
        return Cost(
            macs={"qkv": 3 * padded * dim**2, "proj": padded * dim**2},
            elementwise=4 * padded * dim,  # biases
            parameters=4 * dim**2 + 4 * dim + table,
        )
