"""Global attention that also gives its weights: what asking for attention maps costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vitbench.attention import Attention, Size
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Maps(Operator):
    """Global attention that also gives the weights of every head, (B, H, N, N).

    No fused kernel gives its weights. way recomputed: the backend attends, and the weights are computed beside it from
    the same q and k, N^2 D MACs more. way shared: scores once, their softmax kept and used for the mix, which no
    backend is asked for.
    """

    name = "maps"
    paper = "Vaswani et al. 2017, equation 1; Dosovitskiy et al. 2021 (ViT), section 4.5, looks at such maps"
    scopes = ("layer",)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"way": ("recomputed", "shared")}

    way: str = "recomputed"

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (self_attention(shape),) if self.way == "recomputed" else ()

    def around(self, shape: Shape) -> Cost:
        one = self_attention(shape)
        weights = Cost(macs={"maps": one.cost().macs["scores"]}, elementwise=one.pairs * one.heads)
        return self_projections(shape) + (weights if self.attentions(shape) else one.cost())

    def outputs(self, shape: Shape) -> tuple[Size, ...]:
        n = shape.tokens
        return ((shape.batch, n, shape.dim), (shape.batch, shape.heads, n, n))
