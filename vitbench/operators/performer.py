"""Performer: softmax attention approximated with positive orthogonal random features (FAVOR+)."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Performer(Operator):
    """FAVOR+: softmax attention approximated by m random features exp(w q - |q|^2 / 2), none of its scores formed.

    4ND^2 + 4NmD + NmH MACs an image. features: w q and w k, 2NmD. kv: K'^T V, NmD. q_kv: Q' times that, NmD.
    normaliser: Q' sum k', Nm a head. The projection w is drawn once and takes no gradient.
    features: m; the public code's default is d ln d, 266 where d = 64.
    """

    name = "performer"
    paper = "Choromanski et al. 2021 (Performer), sections 2.2 to 2.4, equations 4, 5 and 7"
    scopes = ("layer", "block")

    features: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return ()

    def unsupported(self, shape: Shape) -> str | None:
        return at_least(1, features=self.features)

    def around(self, shape: Shape) -> Cost:
        tokens = shape.batch * shape.tokens
        products = tokens * self.features * shape.dim
        featured = tokens * self.features * shape.heads  # elements of Q' or K'
        kernel = Cost(
            macs={"features": 2 * products, "kv": products, "q_kv": products, "normaliser": featured},
            constant={"features": 2 * products},
            elementwise=2 * featured + tokens * shape.dim,  # exponentials, quotients
        )
        return self_projections(shape) + kernel
