"""The contract of a layer: the program of an operator, its inner attention injected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from vitbench.operator import Operator
from vitbench.registry import Registry
from vitbench.shape import Shape

Attend = Callable[..., Tensor]  # Backend.attend


class Layer(nn.Module, ABC):
    """An operator's module: (B, N, D) -> (B, N, D), N prefix tokens first, then the grid row by row.

    Every layer projects with self.qkv and self.proj and attends in groups of tokens.
    """

    name: ClassVar[str]  # the operator's

    def __init__(self, operator: Operator, shape: Shape, attend: Attend) -> None:
        super().__init__()
        self.operator, self.shape, self.attend = operator, shape, attend
        self.qkv = nn.Linear(shape.dim, 3 * shape.dim)
        self.proj = nn.Linear(shape.dim, shape.dim)

    @abstractmethod
    def bias(self) -> Tensor | None:
        """What is added to the scores, broadcastable to (B, G, H, N, N)."""

    @abstractmethod
    def mask(self) -> Tensor | None:
        """Bool, broadcastable to (B, G, H, N, N); True = may attend."""

    def attend_groups(self, x: Tensor) -> Tensor:
        """(B, G, N, D) -> (B, G, N, D): project to heads, attend within each group, project back."""
        b, g, n, dim = x.shape
        q, k, v = self.qkv(x).view(b, g, n, 3, self.shape.heads, -1).permute(3, 0, 1, 4, 2, 5)
        out = self.attend(q, k, v, bias=self.bias(), mask=self.mask())
        result: Tensor = self.proj(out.transpose(2, 3).reshape(b, g, n, dim))
        return result


class Core(nn.Module):
    """A layer's attention alone: q, k, v of (B, G, H, N, d) and the bias are given."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.attend = layer.attend
        bias = layer.bias()
        self.bias = None if bias is None else nn.Parameter(bias.detach())
        self.register_buffer("mask", layer.mask())

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.attend(q, k, v, bias=self.bias, mask=self.mask)


class Block(nn.Module):
    """Pre-norm transformer block around a layer (Dosovitskiy 2021, equations 2 and 3; Liu 2021, equation 3)."""

    def __init__(self, layer: Layer, mlp_ratio: int) -> None:
        super().__init__()
        dim = layer.shape.dim
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = layer
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_ratio * dim), nn.GELU(), nn.Linear(mlp_ratio * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


layers: Registry[type[Layer]] = Registry("layer", "vitbench.layers")
