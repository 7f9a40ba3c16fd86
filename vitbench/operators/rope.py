"""Global attention with two-dimensional rotary positions, as in DINOv3."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Rope(Operator):
    """Global attention, queries and keys of the grid turned by their place, axis by axis (rotary embedding).

    4ND^2 + 2N^2 D MACs an image: turning is elementwise, its angles are fixed. Prefix tokens are not turned.
    Of the published forms this is DINOv3's: coordinates of -1 to 1 on each side, d / 4 periods from 1 to below 100, the
    same in all heads. Angles are held in the layer's dtype.
    """

    name = "rope"
    paper = "Siméoni et al. 2025 (DINOv3), section 3.2; Heo et al. 2024 (RoPE-ViT), axial; Su et al. 2021 (RoFormer)"

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (self_attention(shape),)

    def unsupported(self, shape: Shape) -> str | None:
        if shape.head_dim % 4:
            return f"rope turns pairs of features for each of two axes, which head_dim {shape.head_dim} does not hold"
        return None

    def around(self, shape: Shape) -> Cost:
        turned = 2 * shape.batch * shape.height * shape.width * shape.dim
        return self_projections(shape) + Cost(elementwise=turned)
