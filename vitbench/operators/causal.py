"""Causal self-attention: a token attends to itself and to what came before it."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Causal(Operator):
    """Global self-attention in which token i attends to tokens 0 to i, prefix first, then row by row.

    Computed: all N^2 pairs of a head, 4ND^2 + 2N^2 D MACs an image, as in global attention. Useful: N(N + 1)/2 of them.
    What a kernel that skips blocks of later keys saves shows in its time, not in these MACs. No mask is stored.
    """

    name = "causal"
    paper = "Vaswani et al. 2017, section 3.2.3; over image tokens Chen et al. 2020 (iGPT), El-Nouby et al. 2024 (AIM)"

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        useful = shape.batch * quotient(shape.tokens * (shape.tokens + 1), 2)
        return (self_attention(shape, causal=True, useful=useful),)

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape)
