"""Windows running: pad, roll and cut a grid into windows, and back; which pairs of a shifted window may attend."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from vitbench.windows import Windows


class Partition(Windows):
    """A grid cut into windows. Padding first, then rolling: else wrapped tokens would attend.

    Padding tokens are zeros and are attended to, as in Swin's code.
    """

    def cut(self, x: Tensor) -> Tensor:
        """(B, height * width, C) -> (B, windows, tokens of a window, C), windows row by row."""
        rows, columns = self
        x = x.view(-1, rows.side, columns.side, x.shape[-1])
        padding = (0, 0, 0, columns.padded - columns.side, 0, rows.padded - rows.side)
        x = pad(x, padding) if any(padding) else x
        x = x.roll((-rows.shift, -columns.shift), (1, 2)) if rows.shift or columns.shift else x
        return self._windows(x)

    def join(self, x: Tensor) -> Tensor:
        """The inverse of cut, padding dropped."""
        rows, columns = self
        x = x.view(-1, rows.windows, columns.windows, rows.window, columns.window, x.shape[-1])
        x = x.transpose(2, 3).reshape(-1, rows.padded, columns.padded, x.shape[-1])
        x = x.roll((rows.shift, columns.shift), (1, 2)) if rows.shift or columns.shift else x
        return x[:, : rows.side, : columns.side].reshape(-1, rows.side * columns.side, x.shape[-1])

    def allowed(self) -> Tensor | None:
        """(1, G, 1, n, n): pairs that were neighbours before the roll; None where nothing is shifted.

        Wrapped tokens see only each other.
        """
        if not (self.rows.shift or self.columns.shift):
            return None
        region = []
        for axis in self:
            position = torch.arange(axis.padded)
            region.append((position >= axis.padded - axis.shift).long() if axis.shift else torch.zeros_like(position))
        grid = 2 * region[0][:, None] + region[1][None, :]
        windows = self._windows(grid[None, :, :, None]).squeeze(-1).squeeze(0)  # (G, n)
        return (windows[:, :, None] == windows[:, None, :])[None, :, None]

    def numbers(self) -> Tensor:
        """(n, n): for each query and key of a window the number of their offset, of (2 m_h - 1)(2 m_w - 1)."""
        height, width = self.rows.window, self.columns.window
        row, column = torch.arange(height).repeat_interleave(width), torch.arange(width).repeat(height)
        down = row[:, None] - row[None, :] + height - 1
        right = column[:, None] - column[None, :] + width - 1
        index: Tensor = down * (2 * width - 1) + right
        return index

    def _windows(self, x: Tensor) -> Tensor:
        """(B, padded height, padded width, C) -> (B, windows, tokens of a window, C)."""
        rows, columns = self
        x = x.view(-1, rows.windows, rows.window, columns.windows, columns.window, x.shape[-1])
        return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def bias_of(table: Tensor, numbers: Tensor) -> Tensor:
    """table: (offsets, H); numbers: (n, m), of the offset of each query and key -> (H, n, m)."""
    return table[numbers.flatten()].view(*numbers.shape, -1).permute(2, 0, 1)


def subsampled(x: Tensor, height: int, width: int) -> Tensor:
    """(B, N, C) -> (B, M, C): the largest of each 2x2 tokens of each grid of that many; N holds one or several."""
    grids = x.unflatten(1, (-1, height, width)).flatten(0, 1)
    largest = max_pool2d(grids.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)
    return largest.reshape(len(x), -1, x.shape[-1])
