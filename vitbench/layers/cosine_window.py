"""The program of Swin v2's (shifted) window attention."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.cosine_window import HIDDEN, CosineWindow
from vitbench.partition import Partition, bias_of
from vitbench.shape import Shape

SMALLEST_TEMPERATURE = 0.01  # Liu 2022, section 3.2


@layers.add
class CosineWindowAttention(SelfAttention):
    """softmax(cos(q, k) / tau + B) v inside each window (Liu 2022, equation 2).

    State: qkv (weight, and biases of q and v), proj, logit_scale (H, 1, 1) = log(1 / tau), cpb: the MLP of equation 3.
    """

    name = "cosine_window"
    offsets: Tensor
    index: Tensor
    allowed: Tensor | None

    def __init__(self, operator: CosineWindow, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.qkv = KeysWithoutBias(shape.dim)
        self.logit_scale = nn.Parameter(torch.full((shape.heads, 1, 1), log(10)))
        self.cpb = nn.Sequential(nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, shape.heads, bias=False))
        self.windows = Partition(*operator.axes(shape))
        self.register_buffer("offsets", log_spaced(self.windows), persistent=False)
        self.register_buffer("index", self.windows.numbers(), persistent=False)
        self.register_buffer("allowed", self.windows.allowed(), persistent=False)

    def bias(self) -> Tensor:
        """(1, 1, H, n, n), n tokens of a window, between 0 and 16."""
        table = 16 * self.cpb(self.offsets).sigmoid()
        return bias_of(table, self.index).contiguous()[None, None]

    def masks(self) -> tuple[Tensor | None]:
        return (self.allowed,)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.windows.cut(x))
        scale = self.logit_scale.clamp(max=-log(SMALLEST_TEMPERATURE)).exp()
        # A key of padding is zero. Over the square root of the least number its gradient stays finite in float16 too.
        least = torch.finfo(q.dtype).tiny ** 0.5
        q, k = normalize(q, dim=-1, eps=least) * scale, normalize(k, dim=-1, eps=least)
        x = self.joined(self.attend(q, k, v, bias=self.bias(), mask=self.allowed, scale=1.0))
        return self.windows.join(x)


class KeysWithoutBias(nn.Linear):
    """(..., D) -> (..., 3D): q, k, v side by side; k has no bias, as in the authors' code."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, 3 * dim, bias=False)
        self.q_bias, self.v_bias = nn.Parameter(torch.empty(dim)), nn.Parameter(torch.empty(dim))
        for bias in (self.q_bias, self.v_bias):
            nn.init.uniform_(bias, -(dim**-0.5), dim**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, torch.cat((self.q_bias, torch.zeros_like(self.q_bias), self.v_bias)))


def log_spaced(windows: Partition) -> Tensor:
    """((2 m_h - 1)(2 m_w - 1), 2), float64: offsets of -8 to 8, then sign(x) log(1 + |x|) (Liu 2022, equation 4).

    The logarithm is over log 8, as in the authors' code.
    """
    sides = []
    for axis in windows:
        steps = torch.arange(1 - axis.window, axis.window, dtype=torch.float64) * 8 / max(axis.window - 1, 1)
        sides.append(steps.sign() * steps.abs().log1p() / log(8))
    return torch.cartesian_prod(*sides)
