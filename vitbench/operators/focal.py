"""Focal self-attention: a window attends to its tokens and those around it, and to pooled windows farther away."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from vitbench.arithmetic import Number, larger, smaller
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import odd, projections
from vitbench.shape import Shape
from vitbench.windows import Axis, Windows, refused, windows


@operators.add
@dataclass(frozen=True)
class Focal(Operator):
    """Window attention that also sees the tokens around each window and a region of pooled windows.

    2NKD + 4ND^2 + ND + 2(N / M^2) D^2 MACs an image on a grid that windows divide: K keys a query, ND to pool, the
    last term for keys and values of the pooled windows. K = M^2 + 4(M^2 - (M - e)^2) + r^2: as in the authors' code
    the tokens around a window are what four cyclic rolls of the grid by e rows and columns bring into it, so that some
    come twice where 2e < M, and outer windows see the opposite edge. Grids are padded up to whole windows. Where one
    window covers a side there is nothing around.
    window: M, tokens a side. expand: e. region: r, pooled windows a side, those beyond the grid masked; overlaps with
    the finer level are kept. Two levels, as in all of the paper's models.
    """

    name = "focal"
    paper = "Yang et al. 2021 (Focal Transformer), section 3.2, equations 1 to 3"
    prefixed = False

    window: int
    expand: int = 3
    region: int = 3

    def axes(self, shape: Shape) -> Windows:
        return windows(shape, self.window)

    def surroundings(self, shape: Shape) -> tuple[Number, Number]:
        """e, 0 where one window covers a side, and the keys around a window."""
        rows, columns = axes = self.axes(shape)
        expand = self.expand * smaller(rows.windows - 1, 1) * smaller(columns.windows - 1, 1)
        overlap = (rows.window - expand) * (columns.window - expand)
        return expand, 4 * (axes.inside - overlap)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        axes = self.axes(shape)
        groups, tokens = axes.groups, axes.inside
        expand, around = self.surroundings(shape)
        keys = tokens + around + self.region**2
        rolled, inside = zip(*(_rolled_pairs(side, expand) for side in axes), strict=True)
        useful = axes.allowed_pairs() + rolled[0] * rolled[1] - inside[0] * inside[1]
        useful = useful + prod(_pooled_pairs(side, self.region // 2) for side in axes)
        return (
            Attention(
                shape.batch, groups, shape.heads, tokens, keys, shape.head_dim,
                bias=(1, 1, shape.heads, tokens, keys),
                mask=(1, groups, 1, 1, keys) if self.region > 1 else None,
                useful=shape.batch * useful,
            ),
        )  # fmt: skip

    def unsupported(self, shape: Shape) -> str | None:
        if reason := refused(self.window) or odd(region=self.region):
            return reason
        if not 0 <= self.expand <= self.window:
            return f"expand {self.expand} is not within 0 and window {self.window}"
        return None

    def around(self, shape: Shape) -> Cost:
        axes, dim = self.axes(shape), shape.dim
        tokens, pooled = shape.batch * axes.padded, shape.batch * axes.groups
        biases = axes.offsets + axes.inside * self.surroundings(shape)[1] + self.region**2
        pool = Cost(
            macs={"pool": tokens * dim},
            elementwise=pooled * dim,  # bias
            parameters=axes.inside + 1 + biases * shape.heads,
        )
        return pool + projections(tokens, tokens + pooled, dim)


def _rolled_pairs(side: Axis, expand: Number) -> tuple[Number, Number]:
    """Pairs of real positions: of a window's with what rolls by +-expand bring into it; those of them within itself."""
    m, n, padding = side.window, side.windows, side.padded - side.side
    last, rest = m - padding, m - expand  # real positions of the last window; positions of a window that stay in it
    ends = m * (2 * rest + smaller(expand, last) + larger(last - rest, 0))  # the windows beside the last, with its two
    inside_last = last * (larger(last - expand, 0) + smaller(rest, last))
    rolled = 2 * (n - 2) * m * m + ends + inside_last + 2 * last * expand
    return rolled, 2 * (n - 1) * m * rest + inside_last


def _pooled_pairs(side: Axis, reach: int) -> Number:
    """Pairs of a real position and a pooled window at most reach windows away."""
    nearer = smaller(side.windows - 1, reach)
    pairs = side.windows + nearer * (nearer + 1) + 2 * (side.windows - 1 - nearer) * reach
    return side.window * pairs - (side.padded - side.side) * (1 + nearer)
