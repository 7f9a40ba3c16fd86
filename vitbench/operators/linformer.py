"""Linformer: keys and values are projected along the tokens, from N to a fixed number, before attention."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Linformer(Operator):
    """Linformer's self-attention: learned E and F project the N keys and values to k rows.

    4ND^2 + 4NkD MACs an image: qkv, proj, and NkD each for E, F, scores and mix.
    E and F, (k, N), are shared by the heads and not by each other (section 4, headwise sharing), as in the public
    reference layers. Their size fixes N. k may exceed N: then nothing is saved.
    keys: k, rows that are left of the keys and of the values.
    """

    name = "linformer"
    paper = "Wang et al. 2020 (Linformer), section 4, equation 7"

    keys: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (Attention(shape.batch, 1, shape.heads, shape.tokens, self.keys, shape.head_dim),)

    def unsupported(self, shape: Shape) -> str | None:
        return at_least(1, keys=self.keys)

    def around(self, shape: Shape) -> Cost:
        projected = shape.batch * self.keys * shape.tokens * shape.dim
        tables = Cost(macs={"E": projected, "F": projected}, parameters=2 * self.keys * shape.tokens)
        return self_projections(shape) + tables
