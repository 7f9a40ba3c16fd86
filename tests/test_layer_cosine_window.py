"""Swin v2's window attention against torchvision's and timm's with the same weights.

Both write -100 where ours writes -inf: scores differ by at most 36 here, and exp(36 - 100) is far below the tolerance.
Both hold their coordinates in float32; they are given ours, after they were found to be the same to that precision.
"""

from __future__ import annotations

from math import log

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vitbench.case import Case
from vitbench.operators.cosine_window import CosineWindow
from vitbench.program import Program, build
from vitbench.shape import Shape

M, a, b, B, C, H = sympy.symbols("M a b B C H", integer=True, positive=True)
EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 12, 3


def ours(window: int, shift: int, height: int, width: int, dtype: str = "float64", **given: str) -> Program:
    program = build(Case(CosineWindow(window, shift), Shape(2, height, width, DIM, HEADS), "naive", dtype, **given))
    with torch.no_grad():  # else all heads begin with the same temperature
        program.module.logit_scale.copy_(torch.linspace(0, log(10), HEADS)[:, None, None])
    return program


def into(theirs: nn.Module, program: Program, whole_bias: bool) -> nn.Module:
    """Their module with our weights. whole_bias: they hold a bias of k, and ignore it."""
    state = {name: value for name, value in theirs.state_dict().items() if "relative" in name}
    for name, value in program.module.state_dict().items():
        state[name.replace("cpb.", "cpb_mlp.").removeprefix("qkv." if "_bias" in name else "")] = value
    if whole_bias:
        q, v = state.pop("q_bias"), state.pop("v_bias")
        state["qkv.bias"] = torch.cat((q, torch.ones_like(q), v))
    theirs.load_state_dict(state)
    table = theirs.relative_coords_table
    offsets = program.module.offsets.view(table.shape)
    torch.testing.assert_close(table, offsets, rtol=0.0, atol=1e-6, check_dtype=False)
    theirs.relative_coords_table = offsets
    return theirs


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize(("height", "width"), [(14, 21), (8, 8), (9, 31), (5, 23), (5, 6)])  # padded but for the first
def test_cosine_window_attention_is_torchvisions_swin_v2(height: int, width: int, shift: int) -> None:
    swin = pytest.importorskip("torchvision.models.swin_transformer")
    program = ours(7, shift, height, width)
    window, shifts = ([value(side) for side in (height, width)] for value in (lambda n: min(7, n), lambda n: shift))
    theirs = into(swin.ShiftedWindowAttentionV2(DIM, window, shifts, HEADS).double(), program, whole_bias=True)
    expected = theirs(program.inputs[0].view(-1, height, width, DIM)).flatten(1, 2).detach()
    torch.testing.assert_close(program.call(), expected, **EXACT)


# timm's block cuts grids as timm's Swin does, so only those that windows divide can agree.
@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize(("height", "width"), [(8, 12), (4, 8), (3, 4), (1, 8)])
def test_cosine_window_attention_is_timms_swin_v2(height: int, width: int, shift: int) -> None:
    swin = pytest.importorskip("timm.models.swin_transformer_v2")
    program = ours(4, shift, height, width)
    block = swin.SwinTransformerV2Block(DIM, (height, width), HEADS, window_size=4, shift_size=shift).double().eval()
    into(block.attn, program, whole_bias=False)
    theirs = block._attn(program.inputs[0].view(-1, height, width, DIM)).flatten(1, 2).detach()
    torch.testing.assert_close(program.call(), theirs, **EXACT)


def test_no_temperature_is_below_a_hundredth() -> None:
    swin = pytest.importorskip("timm.models.swin_transformer_v2")
    program = ours(4, 0, 4, 4)
    with torch.no_grad():
        program.module.logit_scale.copy_(torch.tensor([2.0, log(100.0), 9.0])[:, None, None])
    theirs = into(swin.WindowAttention(DIM, (4, 4), HEADS).double(), program, whole_bias=False)
    result = program.call()
    torch.testing.assert_close(result, theirs(program.inputs[0]).detach(), **EXACT)
    with torch.no_grad():
        program.module.logit_scale[2] = log(100.0)
    torch.testing.assert_close(program.call(), result, **EXACT)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_keys_of_padding_which_are_zero_give_no_gradient_that_is_not_a_number(dtype: str) -> None:
    program = ours(7, 0, 8, 9, dtype, mode="training")
    keys: list[Tensor] = []
    layer = program.module
    attend, layer.attend = layer.attend, lambda q, k, v, **given: (keys.append(k), attend(q, k, v, **given))[1]
    result, gradients = program.call()
    assert (keys[0] == 0).all(dim=-1).sum() == 2 * HEADS * (14 * 14 - 8 * 9)
    for value in (result, *gradients):
        assert value.isfinite().all()


def test_macs_are_swins_and_the_mlps_once_a_call() -> None:
    h, w = M * a, M * b
    cost = CosineWindow(M).cost(Shape(B, h, w, C, H))
    swin = B * (4 * h * w * C**2 + 2 * M**2 * h * w * C)
    assert sympy.expand(cost.total_macs - swin - (2 * M - 1) ** 2 * (2 * 512 + 512 * H)) == 0


@pytest.mark.parametrize("shift", [0, 4])
def test_macs_of_a_layer_are_those_that_torch_counts_in_timms(shift: int) -> None:
    swin = pytest.importorskip("timm.models.swin_transformer_v2")
    with torch.device("meta"):
        theirs = swin.SwinTransformerV2Block(96, (16, 24), 3, window_size=8, shift_size=shift)
        x = torch.empty(2, 16, 24, 96)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        theirs._attn(x)
    assert counter.get_total_flops() == 2 * CosineWindow(8, shift).cost(Shape(2, 16, 24, 96, 3)).total_macs


@pytest.mark.parametrize(
    ("window", "dim", "depths", "published"),
    [(8, 96, (2, 2, 6, 2), 5.96), (16, 96, (2, 2, 6, 2), 6.68), (16, 128, (2, 2, 18, 2), 22.02)],
)
def test_swin_v2_at_256_has_its_published_gmacs(
    window: int, dim: int, depths: tuple[int, ...], published: float
) -> None:
    """In timm's results/benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv, where an element of a LayerNorm counts 5.

    Swin v2-T with both windows, then B. Every other layer is shifted; a merging's norm comes after its product.
    """
    side, macs, norms = 64, 64 * 64 * 48 * dim, 64 * 64 * dim  # patches of 4 x 4 x 3
    for stage, depth in enumerate(depths):
        if stage:
            side, dim = side // 2, 2 * dim
            macs, norms = macs + side * side * 2 * dim * dim, norms + side * side * dim
        for layer in range(depth):
            operator = CosineWindow(window, layer % 2 * window // 2)
            macs += operator.cost(Shape(1, side, side, dim, dim // 32), "block").total_macs
        norms += 2 * depth * side * side * dim
    norms += side * side * dim  # the last one
    assert round((macs + dim * 1000 + 5 * norms) / 1e9, 2) == published


def test_layers_of_swin_v2_t_have_the_parameters_of_timms() -> None:
    swin = pytest.importorskip("timm.models.swin_transformer_v2")
    with torch.device("meta"):
        theirs = swin.swinv2_tiny_window8_256()
    for stage, dim in zip(theirs.layers, (96, 192, 384, 768), strict=True):
        side = stage.blocks[0].input_resolution[0]
        for block in stage.blocks:
            paper = CosineWindow(8, block.shift_size[0]).cost(Shape(1, side, side, dim, dim // 32))
            assert sum(parameter.numel() for parameter in block.attn.parameters()) == paper.parameters
