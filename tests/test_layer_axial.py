"""Axial attention against torch's multi-head attention, column by column, then row by row."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.operators.axial import Axial
from vitbench.program import Program, build
from vitbench.shape import Shape

HEIGHT, WIDTH, DIM, HEADS = 5, 3, 12, 2
SHAPE = Shape(2, HEIGHT, WIDTH, DIM, HEADS)


@pytest.fixture
def program() -> Program:
    return build(Case(Axial(), SHAPE, "naive", "float64"))


def torchs(program: Program, part: str) -> nn.MultiheadAttention:
    """Torch's attention with our weights of one part."""
    names = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias"}
    names |= {"proj.weight": "out_proj.weight", "proj.bias": "out_proj.bias"}
    state = program.module.state_dict()
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({new: state[f"{part}.{old}"] for old, new in names.items()})
    return theirs.requires_grad_(False)


def attended(theirs: nn.MultiheadAttention, x: Tensor) -> Tensor:
    return theirs(x, x, x, need_weights=False)[0]


def test_it_is_attention_along_each_column_and_then_along_each_row(program: Program) -> None:
    grid = program.inputs[0].view(2, HEIGHT, WIDTH, DIM).clone()
    along_height, along_width = (torchs(program, part) for part in ("along_height", "along_width"))
    for column in range(WIDTH):
        grid[:, :, column] = attended(along_height, grid[:, :, column])
    for row in range(HEIGHT):
        grid[:, row] = attended(along_width, grid[:, row])
    torch.testing.assert_close(program.call(), grid.flatten(1, 2), rtol=0.0, atol=1e-10)


def test_every_token_reaches_every_other(program: Program) -> None:
    changed = program.inputs[0].clone()
    changed[:, 4] += 1
    moved = Program(program.module, (changed,), training=False).call() - program.call()
    assert (moved.abs().amax(-1) > 1e-6).all()


def test_macs_are_the_formula() -> None:
    h, w, d, heads = sympy.symbols("h w D H", integer=True, positive=True)
    expected = 8 * h * w * d**2 + 2 * h * w * (h + w) * d
    assert sympy.expand(Axial().cost(Shape(1, h, w, d, heads)).total_macs - expected) == 0
