"""The program of Swin's (shifted) window attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.window import Window
from vitbench.shape import Shape


@layers.add
class WindowAttention(Layer):
    """Pad, roll, cut into windows, attend, and back. Padding first: else wrapped tokens would attend.

    Padding tokens are zeros before qkv and are attended to, as in the authors' code.
    State: qkv, proj, table ((2m_h - 1)(2m_w - 1), H), the relative position bias (Liu 2021, equation 4).
    """

    name = "window"
    index: Tensor
    allowed: Tensor | None

    def __init__(self, operator: Window, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.rows, self.columns = operator.axes(shape)
        self.table = nn.Parameter(torch.empty((2 * self.rows.window - 1) * (2 * self.columns.window - 1), shape.heads))
        nn.init.normal_(self.table)  # not Swin's 0.02: a backend that drops the bias must be seen to be wrong
        self.register_buffer("index", self._relative_index(), persistent=False)
        self.register_buffer("allowed", self._allowed() if operator.masked(shape) else None, persistent=False)

    def bias(self) -> Tensor:
        """(1, 1, H, m_h m_w, m_h m_w)."""
        n = self.rows.window * self.columns.window
        return self.table[self.index.flatten()].view(n, n, -1).permute(2, 0, 1).contiguous()[None, None]

    def mask(self) -> Tensor | None:
        """(1, G, 1, m_h m_w, m_h m_w)."""
        return self.allowed

    def forward(self, x: Tensor) -> Tensor:
        rows, columns, dim = self.rows, self.columns, self.shape.dim
        shifts = (rows.shift, columns.shift)
        x = x.view(-1, rows.side, columns.side, dim)
        padding = (0, 0, 0, columns.padded - columns.side, 0, rows.padded - rows.side)
        x = pad(x, padding) if any(padding) else x
        x = x.roll((-rows.shift, -columns.shift), (1, 2)) if any(shifts) else x
        x = self._cut(x)
        x = self._join(self.attend_groups(x))
        x = x.roll(shifts, (1, 2)) if any(shifts) else x
        return x[:, : rows.side, : columns.side].reshape(-1, rows.side * columns.side, dim)

    def _cut(self, x: Tensor) -> Tensor:
        """(B, height, width, C) -> (B, windows, tokens of a window, C), windows row by row."""
        rows, columns = self.rows, self.columns
        x = x.view(-1, rows.windows, rows.window, columns.windows, columns.window, x.shape[-1])
        return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)

    def _join(self, x: Tensor) -> Tensor:
        """The inverse of _cut."""
        rows, columns = self.rows, self.columns
        x = x.view(-1, rows.windows, columns.windows, rows.window, columns.window, x.shape[-1])
        return x.transpose(2, 3).reshape(-1, rows.padded, columns.padded, x.shape[-1])

    def _relative_index(self) -> Tensor:
        """(n, n): row of the table for each query and key of a window."""
        height, width = self.rows.window, self.columns.window
        row, column = torch.arange(height).repeat_interleave(width), torch.arange(width).repeat(height)
        down = row[:, None] - row[None, :] + height - 1
        right = column[:, None] - column[None, :] + width - 1
        index: Tensor = down * (2 * width - 1) + right
        return index

    def _allowed(self) -> Tensor:
        """(1, G, 1, n, n): pairs that were neighbours before the roll; wrapped tokens see only each other."""
        region = []
        for axis in (self.rows, self.columns):
            position = torch.arange(axis.padded)
            region.append((position >= axis.padded - axis.shift).long() if axis.shift else torch.zeros_like(position))
        grid = 2 * region[0][:, None] + region[1][None, :]
        windows = self._cut(grid[None, :, :, None]).squeeze(-1).squeeze(0)  # (G, n)
        return (windows[:, :, None] == windows[:, None, :])[None, :, None]
