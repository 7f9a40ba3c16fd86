"""The program of a convolution over the grid of tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.convolution import Convolution
from vitbench.shape import Shape


@layers.add
class ConvolutionLayer(Layer):
    """State: conv (D, D, k, k), depthwise (D, 1, k, k)."""

    name = "convolution"

    def __init__(self, operator: Convolution, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        groups = shape.dim if operator.depthwise else 1
        conv = nn.Conv2d(shape.dim, shape.dim, operator.kernel, padding=operator.kernel // 2, groups=groups)
        self.conv = conv.to(memory_format=torch.channels_last)  # as the tokens lie, else each call rearranges weights

    def forward(self, x: Tensor) -> Tensor:
        grid = x.transpose(1, 2).unflatten(-1, (self.shape.height, self.shape.width))
        out: Tensor = self.conv(grid).flatten(2).transpose(1, 2)
        return out
