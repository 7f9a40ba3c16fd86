"""Global multi-head self-attention: every token attends to every token."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Global(Operator):
    """Multi-head self-attention over all N tokens, prefix tokens among them.

    4ND^2 + 2N^2 D MACs an image; on a grid 4hwC^2 + 2(hw)^2 C (Liu 2021, equation 1).
    """

    name = "global"
    paper = "Dosovitskiy et al. 2021 (ViT), appendix A, equations 5 to 8; Vaswani et al. 2017, equation 1"

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (self_attention(shape),)

    def held(self, shape: Shape) -> int:
        return 0

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape)
