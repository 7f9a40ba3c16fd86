"""Window attention is global attention over the padded grid under the window mask, with the bias spread out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from examples import eager_backends
from test_window_pairs import attended
from torch import Tensor

from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.program import build
from vitbench.shape import Shape

GRIDS = [(8, 8, 4, 0), (8, 8, 4, 2), (5, 7, 3, 1), (7, 5, 3, 2), (3, 10, 4, 1), (3, 3, 4, 2), (9, 6, 3, 0)]


def spread(table: Tensor, operator: Window, shape: Shape) -> Tensor:
    """(1, 1, H, N, N): the bias of each pair of the padded grid; 0 for pairs that lie too far apart to attend."""
    rows, columns = operator.axes(shape)
    token = np.arange(rows.padded * columns.padded)
    places = []
    for position, axis in ((token // columns.padded, rows), (token % columns.padded, columns)):
        places.append((position - axis.shift) % axis.padded)  # where the shift puts it
    down, right = (place[:, None] - place[None, :] for place in places)
    near = (abs(down) < rows.window) & (abs(right) < columns.window)
    row = (down + rows.window - 1) * (2 * columns.window - 1) + right + columns.window - 1
    bias = table[torch.from_numpy(np.where(near, row, 0))] * torch.from_numpy(near)[..., None]
    return bias.permute(2, 0, 1)[None, None]


@pytest.mark.parametrize("with_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(("height", "width", "window", "shift"), GRIDS)
@pytest.mark.parametrize("backend", eager_backends())
def test_window_attention_equals_global_attention_under_the_window_mask(
    backend: str, height: int, width: int, window: int, shift: int, with_bias: bool
) -> None:
    operator, shape = Window(window, shift), Shape(2, height, width, 24, 3)
    case = Case(operator, shape, backend, "float64")
    if reason := refused(case):
        pytest.skip(reason)
    program = build(case)
    layer, x = program.module, program.inputs[0]
    with torch.no_grad():
        layer.table.mul_(50 if with_bias else 0)  # a bias of about 1

    rows, columns = operator.axes(shape)
    padded = replace(shape, height=rows.padded, width=columns.padded)
    mask = torch.from_numpy(attended(height, width, window, shift))[None, None, None]
    given = {"bias": spread(layer.table, operator, shape) if with_bias else None, "mask": mask}
    attend = backends[backend].attend
    everywhere = build(
        Case(Global(), padded, backend, "float64"), attend=lambda q, k, v, **_: partial(attend, **given)(q, k, v)
    ).module
    everywhere.load_state_dict({name: value for name, value in layer.state_dict().items() if name != "table"})
    grid = x.new_zeros(2, padded.height, padded.width, 24)
    grid[:, :height, :width] = x.view(2, height, width, 24)
    with torch.inference_mode():
        expected = everywhere(grid.flatten(1, 2)).view_as(grid)[:, :height, :width].flatten(1, 2)
    torch.testing.assert_close(program.call(), expected, rtol=0, atol=1e-10)
