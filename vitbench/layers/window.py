"""The program of Swin's (shifted) window attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.window import Window
from vitbench.partition import Partition
from vitbench.shape import Shape


@layers.add
class WindowAttention(SelfAttention):
    """Attention inside each window, relative position bias added (Liu 2021, equation 4).

    State: qkv, proj, table ((2m_h - 1)(2m_w - 1), H).
    """

    name = "window"
    index: Tensor
    allowed: Tensor | None

    def __init__(self, operator: Window, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.windows = Partition(*operator.axes(shape))
        rows, columns = self.windows
        self.table = nn.Parameter(torch.empty((2 * rows.window - 1) * (2 * columns.window - 1), shape.heads))
        nn.init.normal_(self.table)  # not Swin's 0.02: a backend that drops the bias must be seen to be wrong
        self.register_buffer("index", self.windows.offsets(), persistent=False)
        self.register_buffer("allowed", self.windows.allowed(), persistent=False)

    def bias(self) -> Tensor:
        """(1, 1, H, n, n), n tokens of a window."""
        n = len(self.index)
        return self.table[self.index.flatten()].view(n, n, -1).permute(2, 0, 1).contiguous()[None, None]

    def masks(self) -> tuple[Tensor | None]:
        return (self.allowed,)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attend_groups(self.windows.cut(x), bias=self.bias(), mask=self.allowed)
        return self.windows.join(x)
