"""Axial attention: along the columns of a grid, then along its rows."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Axial(Operator):
    """Axial attention: each token attends within its column, then within its row, so that all reach one another.

    8ND^2 + 2N (h + w) D MACs an image. Two attentions one after the other, first along the height and then along the
    width, each with projections of its own and nothing in between. Without the positional terms of Axial-DeepLab, and
    without the shifts and masks that Ho uses to generate images.
    """

    name = "axial"
    paper = "Ho et al. 2019 (Axial Transformers), section 3.1; Wang et al. 2020 (Axial-DeepLab), section 3.2"
    prefixed = False

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        height, width = shape.height, shape.width
        return (
            Attention(shape.batch, width, shape.heads, height, height, shape.head_dim),
            Attention(shape.batch, height, shape.heads, width, width, shape.head_dim),
        )

    def around(self, shape: Shape) -> Cost:
        return self_projections(shape) + self_projections(shape)
