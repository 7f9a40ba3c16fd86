"""The program of axial attention."""

from __future__ import annotations

from torch import Tensor

from vitbench.layer import Attend, Layer, SelfAttention, layers
from vitbench.operators.axial import Axial
from vitbench.shape import Shape


@layers.add
class AxialAttention(Layer):
    """Groups are the columns, then the rows (Wang 2020, section 3.2: the height axis, then the width axis).

    State: along_height and along_width, each with qkv and proj.
    """

    name = "axial"

    def __init__(self, operator: Axial, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.along_height = SelfAttention(operator, shape, attend)
        self.along_width = SelfAttention(operator, shape, attend)

    def forward(self, x: Tensor) -> Tensor:
        grid = x.unflatten(1, (self.shape.height, self.shape.width))
        # One copy here spares a backend three, of q, k and v whose images and groups do not merge.
        columns = self.along_height.attend_groups(grid.transpose(1, 2).contiguous())
        rows = self.along_width.attend_groups(columns.transpose(1, 2).contiguous())
        return rows.flatten(1, 2)
