"""ViTDet's and SAM's attention: global or windowed, with relative positions that the query reads axis by axis."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import projections
from vitbench.shape import Shape
from vitbench.windows import Axis, Windows


@operators.add
@dataclass(frozen=True)
class DecomposedBias(Operator):
    """Global or windowed attention with decomposed relative positions: bias = q rel_pos_h + q rel_pos_w.

    4NC^2 + 2NnC + N(m_h + m_w)C MACs an image, n = m_h m_w tokens of a window, N tokens of the grid. Padded up to whole
    windows first, as in the authors' codes: zeros after the norm, projected and attended to.
    The bias is of the unscaled query and is not divided by sqrt(d), as in the codes of MViTv2, ViTDet and SAM. The
    tables are one for all heads. A dense bias of an entry of its own for every image, head, query and key is handed to
    the backend.
    window: M, tokens a side, also where a side of the grid is shorter; 0: one window, the grid.
    """

    name = "decomposed_bias"
    paper = "Li et al. 2022 (ViTDet), section 3; Kirillov et al. 2023 (SAM), appendix A; Li et al. 2022 (MViTv2), eq. 4"
    prefixed = False

    window: int = 0

    def axes(self, shape: Shape) -> Windows:
        return Windows(*(Axis(side, self.window or side, 0) for side in (shape.height, shape.width)))

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        axes = self.axes(shape)
        return (axes.attention(shape, bias=(shape.batch, axes.groups, shape.heads, axes.inside, axes.inside)),)

    def unsupported(self, shape: Shape) -> str | None:
        if self.window == 1 or self.window < 0:
            return f"window {self.window} is neither 0 (the whole grid) nor at least 2"
        return None

    def around(self, shape: Shape) -> Cost:
        rows, columns = axes = self.axes(shape)
        padded, dim = shape.batch * axes.padded, shape.dim
        positions = Cost(
            macs={"rel_pos": padded * (rows.window + columns.window) * dim},
            elementwise=padded * axes.inside * shape.heads,  # the sum of both axes' terms
            parameters=((2 * rows.window - 1) + (2 * columns.window - 1)) * shape.head_dim,
        )
        return projections(padded, padded, dim) + positions
