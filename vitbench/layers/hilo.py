"""The program of HiLo attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
from vitbench.operators.hilo import HiLo
from vitbench.partition import Partition
from vitbench.shape import Shape
from vitbench.windows import windows


@layers.add
class HiLoAttention(Layer):
    """Hi-Fi and Lo-Fi side by side, the Hi-Fi features first (Pan 2022, section 3.2); either is None without heads."""

    name = "hilo"

    def __init__(self, operator: HiLo, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        high, low = operator.split(shape)
        self.windows = Partition(*windows(shape, operator.window))
        self.high = HiFi(shape, high, attend) if high else None
        self.low = LoFi(shape, low, attend) if low else None

    def forward(self, x: Tensor) -> Tensor:
        windows = self.windows.cut(x)
        parts = []
        if self.high is not None:
            parts.append(self.windows.join(self.high(windows)))
        if self.low is not None:
            parts.append(self.low(x, windows.mean(2)))
        return torch.cat(parts, dim=-1)


class HiFi(nn.Module):
    """Self-attention within each window. State: qkv (3D_h, D), rows in the order q, k, v; proj (D_h, D_h)."""

    def __init__(self, shape: Shape, heads: int, attend: Attend) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        width = heads * shape.head_dim
        self.qkv = nn.Linear(shape.dim, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, windows: Tensor) -> Tensor:
        """(B, G, n, D) -> (B, G, n, D_h)."""
        q, k, v = split_heads(self.qkv(windows), self.heads, 3)
        out: Tensor = self.proj(join_heads(self.attend(q, k, v)))
        return out


class LoFi(nn.Module):
    """Every token attends to the windows' means. State: q (D_l, D), kv (2D_l, D), rows k, then v; proj (D_l, D_l)."""

    def __init__(self, shape: Shape, heads: int, attend: Attend) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        width = heads * shape.head_dim
        self.q = nn.Linear(shape.dim, width)
        self.kv = nn.Linear(shape.dim, 2 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, means: Tensor) -> Tensor:
        """(B, N, D) and (B, G, D) -> (B, N, D_l)."""
        (q,) = split_heads(self.q(x).unsqueeze(1), self.heads)
        k, v = split_heads(self.kv(means).unsqueeze(1), self.heads, 2)
        out: Tensor = self.proj(join_heads(self.attend(q, k, v)).squeeze(1))
        return out
