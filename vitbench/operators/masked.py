"""Random sparse attention run densely: an arbitrary mask says which pairs may attend."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Masked(Operator):
    """Global self-attention under a mask in which every token sees itself and some others, drawn at random.

    keep: per cent of the N keys (prefix tokens among them) that each query may attend to, rounded down; at least two.
    Computed: all N^2 pairs of a head, 4ND^2 + 2N^2 D MACs an image. Useful: N times the kept keys. The mask has no
    structure to use, so it shows what a mask costs.
    """

    name = "masked"
    paper = "Zaheer et al. 2020 (BigBird), section 2: random keys; without its window and global tokens"

    keep: int

    def keys(self, shape: Shape) -> Number:
        """Keys that a query may attend to, itself among them."""
        return self.keep * shape.tokens // 100

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        n = shape.tokens
        return (self_attention(shape, mask=(1, 1, 1, n, n), useful=shape.batch * n * self.keys(shape)),)

    def unsupported(self, shape: Shape) -> str | None:
        if not 1 <= self.keep <= 100:
            return f"keep {self.keep} is not within 1 and 100 per cent"
        if self.keys(shape) < 2:
            return f"keep {self.keep} per cent of {shape.tokens} tokens is less than 2 keys, a query's own and another"
        return None

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape)
