"""The program of HiLo attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.operators.hilo import HiLo
from vitbench.partition import Partition
from vitbench.shape import Shape
from vitbench.windows import axis


@layers.add
class HiLoAttention(Layer):
    """Hi-Fi and Lo-Fi side by side, the Hi-Fi features first (Pan 2022, section 3.2); either is None without heads."""

    name = "hilo"

    def __init__(self, operator: HiLo, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        high, low = operator.split(shape)
        self.windows = Partition(*(axis(side, operator.window, 0) for side in (shape.height, shape.width)))
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
        q, k, v = self.qkv(windows).unflatten(-1, (3, self.heads, -1)).permute(3, 0, 1, 4, 2, 5)
        out: Tensor = self.proj(self.attend(q, k, v).transpose(2, 3).flatten(3))
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
        q = self.q(x).unflatten(-1, (1, self.heads, -1)).permute(0, 2, 3, 1, 4)  # (B, 1, H_l, N, d)
        k, v = self.kv(means).unflatten(-1, (2, 1, self.heads, -1)).permute(2, 0, 3, 4, 1, 5)  # (B, 1, H_l, G, d)
        out: Tensor = self.proj(self.attend(q, k, v)[:, 0].transpose(1, 2).flatten(2))
        return out
