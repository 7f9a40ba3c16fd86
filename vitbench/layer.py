"""The contract of a layer: the program of an operator, its inner attention injected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vitbench.operator import Operator
from vitbench.registry import Registry
from vitbench.shape import Shape

Attend = Callable[..., Tensor]  # Backend.attend


def split_heads(x: Tensor, heads: int, count: int = 1) -> Tensor:
    """(B, G, N, count H d) -> (count, B, G, H, N, d): q, k, v or some of them, side by side, each head by head."""
    parts: Tensor = x.unflatten(-1, (count, heads, -1))
    return parts.permute(3, 0, 1, 4, 2, 5)


def join_heads(x: Tensor) -> Tensor:
    """(B, G, H, N, d) -> (B, G, N, H d): heads side by side."""
    return x.transpose(2, 3).flatten(3)


class Layer(nn.Module):
    """An operator's module: forward takes and gives what the operator says, (B, N, D) unless it says otherwise.

    N: prefix tokens first, then the grid row by row. self.attend is the backend's and is called for every softmax
    attention of the operator, in its order. Parameters that a paper starts at a constant, or close to zero, are drawn
    at random here, and large: a program or a backend that drops one must be seen to be wrong.
    """

    name: ClassVar[str]  # the operator's
    operator: Operator  # a layer that reads its parameters says which

    def __init__(self, operator: Any, shape: Shape, attend: Attend) -> None:
        super().__init__()
        self.operator, self.shape, self.attend = operator, shape, attend

    def masks(self) -> tuple[Tensor | None, ...]:
        """The mask of each attention: bool, broadcastable to (B, G, H, N, M), True = may attend; in most, none."""
        return (None,) * len(self.operator.attentions(self.shape))


class SelfAttention(Layer):
    """Projects with self.qkv and self.proj, and attends in groups of tokens.

    State: qkv (3D, D), rows in the order q, k, v, head by head; proj (D, D).
    """

    def __init__(self, operator: Any, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.qkv = nn.Linear(shape.dim, 3 * shape.dim)
        self.proj = nn.Linear(shape.dim, shape.dim)

    def attend_groups(self, x: Tensor, **given: Any) -> Tensor:
        """(B, G, N, D) -> (B, G, N, D): project to heads, attend within each group, project back.

        given: bias, mask, causal, scale, as for Backend.attend.
        """
        q, k, v = self.heads(x)
        return self.joined(self.attend(q, k, v, **given))

    def heads(self, x: Tensor) -> Tensor:
        """(B, G, N, D) -> q, k, v: (3, B, G, H, N, d)."""
        return split_heads(self.qkv(x), self.shape.heads, 3)

    def joined(self, out: Tensor) -> Tensor:
        """(B, G, H, N, d) -> (B, G, N, D): heads side by side, projected."""
        result: Tensor = self.proj(join_heads(out))
        return result


class MaskedSelfAttention(SelfAttention, ABC):
    """All tokens in one group, under one mask for all heads that is made with the layer."""

    mask: Tensor

    def __init__(self, operator: Any, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.register_buffer("mask", self.made(), persistent=False)

    @abstractmethod
    def made(self) -> Tensor:
        """The mask, (B or 1, 1, 1, N or 1, N)."""

    def masks(self) -> tuple[Tensor]:
        return (self.mask,)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1), mask=self.mask).squeeze(1)


class Core(nn.Module):
    """A layer's attention alone: q, k, v and the bias of each of its attentions are given; the results side by side."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.attend, self.attentions = layer.attend, layer.operator.attentions(layer.shape)
        self.bias = nn.ParameterDict()
        for n, (attention, mask) in enumerate(zip(self.attentions, layer.masks(), strict=True)):
            if attention.bias is not None:
                self.bias[str(n)] = nn.Parameter(torch.randn(attention.bias))
            self.register_buffer(f"mask{n}", mask)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        results = []
        for n, attention in enumerate(self.attentions):
            bias, mask = self.bias.get(str(n), None), getattr(self, f"mask{n}")
            q, k, v = inputs[3 * n : 3 * n + 3]
            given = {"causal": attention.causal, "scale": attention.scale}
            results.append(self.attend(q, k, v, bias=bias, mask=mask, **given))
        return results[0] if len(results) == 1 else tuple(results)


class Block(nn.Module):
    """Pre-norm transformer block around a layer (Dosovitskiy 2021, equations 2 and 3; Liu 2021, equation 3).

    hidden: width of the MLP. others: what the layer takes beside x, as it is (a memory to attend to).
    """

    def __init__(self, layer: Layer, hidden: int, eps: float = 1e-5) -> None:
        super().__init__()
        dim = layer.shape.dim
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        self.attention = layer
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), *others)
        x = x + self.mlp(self.norm2(x))
        return x


layers: Registry[type[Layer]] = Registry("layer", "vitbench.layers")
