"""The program of Swin's (shifted) window attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.window import Window
from vitbench.partition import Partition, bias_of
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
        self.table = nn.Parameter(torch.empty(self.windows.offsets, shape.heads))
        nn.init.normal_(self.table)
        self.register_buffer("index", self.windows.numbers(), persistent=False)
        self.register_buffer("allowed", self.windows.allowed(), persistent=False)

    def bias(self) -> Tensor:
        """(1, 1, H, n, n), n tokens of a window."""
        return bias_of(self.table, self.index).contiguous()[None, None]

    def masks(self) -> tuple[Tensor | None]:
        return (self.allowed,)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attend_groups(self.windows.cut(x), bias=self.bias(), mask=self.allowed)
        return self.windows.join(x)
