"""Divided space-time attention against torch's multi-head attention, place by place, then frame by frame."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.operators.divided import Divided
from vitbench.operators.global_ import Global
from vitbench.program import Program, build
from vitbench.shape import Shape

FRAMES, ROWS, COLUMNS, DIM, HEADS = 3, 2, 4, 12, 2
PLACES = ROWS * COLUMNS
CLIP = Shape(1, 8 * 14, 14, 768, 12)  # TimeSformer's: 8 frames of 14 x 14 tokens
PATCHES = 16 * 16 * 3 * 768  # weights of ViT-B's patch embedding


@pytest.fixture
def program() -> Program:
    return build(Case(Divided(FRAMES), Shape(2, FRAMES * ROWS, COLUMNS, DIM, HEADS), "naive", "float64"))


def attended(program: Program, part: str, x: Tensor) -> Tensor:
    """Torch's attention with our weights of one part."""
    names = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias"}
    names |= {"proj.weight": "out_proj.weight", "proj.bias": "out_proj.bias"}
    state = program.module.state_dict()
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({new: state[f"{part}.{old}"] for old, new in names.items()})
    return theirs(x, x, x, need_weights=False)[0].detach()


def test_it_is_attention_over_time_and_then_over_space(program: Program) -> None:
    x, state = program.inputs[0], program.module.state_dict()
    time, space = torch.empty_like(x), torch.empty_like(x)
    for place in range(PLACES):
        tokens = [frame * PLACES + place for frame in range(FRAMES)]
        time[:, tokens] = attended(program, "time", x[:, tokens])
    time = time @ state["temporal_fc.weight"].T + state["temporal_fc.bias"]
    seen = x + time
    seen = (seen - seen.mean(-1, keepdim=True)) / (seen.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    seen = seen * state["norm.weight"] + state["norm.bias"]
    for frame in range(FRAMES):
        tokens = list(range(frame * PLACES, (frame + 1) * PLACES))
        space[:, tokens] = attended(program, "space", seen[:, tokens])
    torch.testing.assert_close(program.call(), time + space, rtol=0.0, atol=1e-10)


def test_macs_are_the_formula() -> None:
    f, h, w, d, heads = sympy.symbols("F h w D H", integer=True, positive=True)
    n = f * h * w
    expected = 9 * n * d**2 + 2 * n * (f + h * w) * d
    assert sympy.expand(Divided(f).cost(Shape(1, f * h, w, d, heads)).total_macs - expected) == 0


def test_twelve_blocks_make_the_published_parameters_of_timesformer() -> None:
    """Bertasius 2021, table 1: 85.9 M with attention over space alone, 121.4 M divided; the head has SSv2's classes."""
    beside = PATCHES + 768 + 197 * 768 + 768 + 2 * 768 + (768 + 1) * 174  # patches, positions, CLS, norm, head
    space, divided = (12 * operator.cost(CLIP, "block").parameters + beside for operator in (Global(), Divided(8)))
    assert f"{space / 1e6:.1f}" == "85.9"
    assert f"{(divided + 8 * 768) / 1e6:.1f}" == "121.4"  # and a place for each frame


def test_twelve_blocks_make_the_published_macs_of_timesformer() -> None:
    """Bertasius 2021, table 2: 0.59 TFLOPs, which are MACs, of three views. Its CLS token is not worth a digit."""
    view = 12 * Divided(8).cost(CLIP, "block").total_macs + CLIP.tokens * PATCHES
    assert f"{3 * view / 1e12:.2f}" == "0.59"


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (Divided(0), Shape(1, 8, 8, 8, 1), "frames 0 is less than 1"),
        (Divided(3), Shape(1, 8, 8, 8, 1), "height 8 is not divisible by 3 frames, one above another"),
    ],
)
def test_what_is_no_stack_of_frames_is_refused(operator: Divided, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason
