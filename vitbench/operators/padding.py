"""A batch of images of several widths, padded to one grid."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Padding(Operator):
    """Global self-attention in a batch of images of several widths, padded to one grid; no token attends to padding.

    images: k, the number of widths. Image i of the batch is w (i mod k + 1) / k columns wide, the rest is padding.
    Computed: padding too, 4ND^2 + 2N^2 D MACs an image, N = hw. Useful, on average of an image and a head:
    N^2 (k + 1)(2k + 1) / 6k^2 of the N^2 pairs, those of two real tokens. A padding token is no key, yet a query.
    """

    name = "padding"
    paper = "Carion et al. 2020 (DETR), section 3.2: images padded with 0 to the largest of their batch"
    prefixed = False

    images: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        k = self.images
        squares = quotient(k * (k + 1) * (2 * k + 1), 6)  # 1^2 + 2^2 + ... + k^2
        useful = quotient(shape.batch, k) * (shape.height * quotient(shape.width, k)) ** 2 * squares
        return (self_attention(shape, mask=(shape.batch, 1, 1, 1, shape.tokens), useful=useful),)

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, images=self.images):
            return reason
        for side in ("width", "batch"):
            if getattr(shape, side) % self.images:
                return f"{side} {getattr(shape, side)} is not divisible by {self.images} images of different widths"
        return None

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape)
