"""NaViT's packing: images of several widths in one sequence, each attending within itself."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Packed(Operator):
    """Global self-attention in sequences of several images each, under a mask that keeps the images apart.

    images: k in a sequence. They share the columns of its grid 1 : 2 : ... : k, side by side; N = hw tokens, none of
    them padding. Computed: all pairs, 4ND^2 + 2N^2 D MACs a sequence. Useful, of a head: 2(2k + 1) / 3k(k + 1) of the
    N^2 pairs, those within an image. Beside the same images padded to one grid (k of width w, or one sequence of width
    w (k + 1)/2): (k + 1)/2k of the projections, (k + 1)^2/4k of the computed pairs, the same useful pairs.
    """

    name = "packed"
    paper = "Dehghani et al. 2023 (NaViT, Patch n' Pack), section 2.1: masked self-attention"
    prefixed = False

    images: int

    @property
    def shares(self) -> Number:
        """Parts of equal width that a grid is cut into: 1 + 2 + ... + k."""
        return quotient(self.images * (self.images + 1), 2)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        n, k = shape.tokens, self.images
        squares = quotient(k * (k + 1) * (2 * k + 1), 6)  # 1^2 + 2^2 + ... + k^2
        useful = shape.batch * (shape.height * quotient(shape.width, self.shares)) ** 2 * squares
        return (self_attention(shape, mask=(1, 1, 1, n, n), useful=useful),)

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, images=self.images):
            return reason
        if shape.width % self.shares:
            return f"width {shape.width} is not divisible by {self.shares}, the shares of {self.images} images"
        return None

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape)
