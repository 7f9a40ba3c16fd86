"""Windows on paper: a grid cut into windows, padded and shifted as in Swin's code."""

from __future__ import annotations

from typing import Any, NamedTuple

from vitbench.arithmetic import Number, ceil_div, ever_positive, larger, smaller
from vitbench.attention import Attention
from vitbench.parts import at_least
from vitbench.shape import Shape


class Axis(NamedTuple):
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
        m, s, windows = self.window, self.shift, self.windows
        padding = windows * m - self.side
        tail = larger(m - s - padding, 0)
        before = m - larger(padding - (m - s), 0)
        wrapped = (windows - 2) * m * m + before * before + tail * tail + s * s
        unshifted = (windows - 1) * m * m + (m - padding) * (m - padding)
        shifted = smaller(s, 1)  # 0 or 1
        return shifted * wrapped + (1 - shifted) * unshifted


def axis(side: Number, window: Number, shift: Number) -> Axis:
    """Fit a window to a side: min(window, side), and no shift where one window covers the side."""
    fitted = smaller(window, side)
    several = smaller(ceil_div(side, fitted) - 1, 1)  # 1 where there are two windows or more, else 0
    return Axis(side, fitted, shift * several)


class Windows(NamedTuple):
    """Both sides of the grid cut into windows."""

    rows: Axis
    columns: Axis

    @property
    def groups(self) -> Number:
        """Windows of one image."""
        return self.rows.windows * self.columns.windows

    @property
    def inside(self) -> Number:
        """Tokens of a window."""
        return self.rows.window * self.columns.window

    @property
    def padded(self) -> Number:
        """Tokens of one image, padding among them."""
        return self.rows.padded * self.columns.padded

    @property
    def offsets(self) -> Number:
        """How many offsets there are between two tokens of a window."""
        return (2 * self.rows.window - 1) * (2 * self.columns.window - 1)

    def allowed_pairs(self) -> Number:
        """Of one image, all windows together."""
        return self.rows.allowed_pairs() * self.columns.allowed_pairs()

    def attention(self, shape: Shape, **given: Any) -> Attention:
        """The tokens of each window among themselves; if shifted, masked. given: further fields of Attention."""
        n = self.inside
        mask = (1, self.groups, 1, n, n) if ever_positive(self.rows.shift + self.columns.shift) else None
        useful = shape.batch * self.allowed_pairs()
        return Attention(shape.batch, self.groups, shape.heads, n, n, shape.head_dim, mask=mask, useful=useful, **given)


def windows(shape: Shape, window: int, shift: int = 0) -> Windows:
    """The grid cut into windows that are fitted to its sides."""
    return Windows(axis(shape.height, window, shift), axis(shape.width, window, shift))


def refused(window: int, shift: int = 0) -> str | None:
    """Why there are no such windows, in one sentence; None if there are."""
    if reason := at_least(1, window=window):
        return reason
    return None if 0 <= shift < window else f"shift {shift} is not within 0 and window {window}"
