"""Additive attention: a small network, not a product, compares query and key."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Additive(Operator):
    """Additive (Bahdanau) self-attention: scores v^T tanh(W q + U k) in each head, then softmax and mix.

    4ND^2 + 2N^2 D MACs an image: qkv, proj; scores N^2 d a head, mix N^2 d a head. And N^2 D tanh, held all at once:
    what multiplicative attention was preferred to it for (Vaswani 2017, section 3.2.1). Its scores are no q k^T, so no
    backend can execute them. W, U and the values' projection stand in qkv; heads and proj are Vaswani's.
    """

    name = "additive"
    paper = "Bahdanau et al. 2015, section 3.1, equations 5 and 6, and appendix A.1.2"
    scopes = ("layer", "block")

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return ()

    def around(self, shape: Shape) -> Cost:
        pairs, dim = shape.batch * shape.tokens**2, shape.dim
        scored = Cost(
            macs={"scores": pairs * dim, "mix": pairs * dim},
            score_elements=pairs * shape.heads,
            useful_score_elements=pairs * shape.heads,
            elementwise=2 * pairs * dim + pairs * shape.heads,  # sums, tanh, softmax
            parameters=dim,  # v of each head
        )
        return self_projections(shape) + scored
