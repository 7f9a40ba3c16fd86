"""Attention with decomposed relative positions against timm's SAM encoder with the same weights."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vitbench.case import Case
from vitbench.operators.decomposed_bias import DecomposedBias
from vitbench.program import Program, build
from vitbench.shape import Shape

M, a, b, C, H = sympy.symbols("M a b C H", integer=True, positive=True)
EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 24, 3
# divided, padded at both sides, a side or both shorter than the window, one token wide
WINDOWED = [(8, 12), (9, 14), (5, 3), (3, 9), (1, 6)]


def ours(window: int, height: int, width: int, scope: str = "layer") -> Program:
    return build(Case(DecomposedBias(window), Shape(2, height, width, DIM, HEADS), "naive", "float64", scope=scope))


def on_grid(module: nn.Module, x: Tensor, height: int, width: int) -> Tensor:
    return module(x.view(-1, height, width, DIM)).flatten(1, 2).detach()


@pytest.mark.parametrize(("height", "width"), [(5, 7), (6, 6), (1, 4)])
def test_attention_over_the_grid_is_timms_sam(height: int, width: int) -> None:
    sam = pytest.importorskip("timm.models.vision_transformer_sam")
    program = ours(0, height, width)
    theirs = sam.Attention(DIM, HEADS, use_rel_pos=True, input_size=(height, width)).double()
    theirs.load_state_dict(program.module.state_dict())
    torch.testing.assert_close(program.call(), on_grid(theirs, program.inputs[0], height, width), **EXACT)


@pytest.mark.parametrize(("window", "height", "width"), [(0, 5, 7), *((4, *sides) for sides in WINDOWED)])
def test_a_block_is_timms_sam_padded_after_the_norm(window: int, height: int, width: int) -> None:
    sam = pytest.importorskip("timm.models.vision_transformer_sam")
    program = ours(window, height, width, "block")
    theirs = sam.Block(DIM, HEADS, use_rel_pos=True, window_size=window, input_size=(height, width)).double()
    theirs.norm1.eps = theirs.norm2.eps = program.module.norm1.eps
    state = program.module.state_dict()
    for old, new in {"attention.": "attn.", "mlp.0": "mlp.fc1", "mlp.2": "mlp.fc2"}.items():
        state = {name.replace(old, new): value for name, value in state.items()}
    theirs.load_state_dict(state)
    torch.testing.assert_close(program.call(), on_grid(theirs, program.inputs[0], height, width), **EXACT)


def test_the_bias_handed_over_lies_in_order() -> None:
    seen = []

    def attend(q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor) -> Tensor:
        seen.append(bias)
        return v

    build(Case(DecomposedBias(4), Shape(2, 9, 14, DIM, HEADS), "naive"), attend=attend).call()
    assert seen[0].is_contiguous()  # else a backend copies what is the largest tensor of the layer


def test_macs_are_those_of_windows_and_an_offset_term_for_each_side() -> None:
    h, w = M * a, M * b
    macs = DecomposedBias(M).cost(Shape(1, h, w, C, H)).macs
    assert sympy.expand(macs["rel_pos"] - h * w * 2 * M * C) == 0
    assert sympy.expand(macs["scores"] + macs["mix"] - 2 * M**2 * h * w * C) == 0
    whole = DecomposedBias().cost(Shape(1, a, b, C, H)).macs
    assert sympy.expand(whole["rel_pos"] - a * b * (a + b) * C) == 0
    assert sympy.expand(whole["scores"] + whole["mix"] - 2 * (a * b) ** 2 * C) == 0


@pytest.mark.parametrize("window", [0, 14])
def test_macs_of_a_block_are_those_that_torch_counts_in_timms(window: int) -> None:
    sam = pytest.importorskip("timm.models.vision_transformer_sam")
    with torch.device("meta"):
        theirs = sam.Block(768, 12, use_rel_pos=True, window_size=window, input_size=(64, 64))
        x = torch.empty(2, 64, 64, 768)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        theirs(x)
    macs = DecomposedBias(window).cost(Shape(2, 64, 64, 768, 12), "block").total_macs
    assert counter.get_total_flops() == 2 * macs


@pytest.mark.parametrize(
    ("side", "neck", "published"),
    [(64, 256 * 768 + 9 * 256 * 256, 486.43), (14, 0, 17.54)],  # samvit_base_patch16 at 1024, its _224 without a neck
)
def test_the_encoder_of_sam_vit_b_has_its_published_gmacs(side: int, neck: int, published: float) -> None:
    """In timm's results/benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv, where an element of a LayerNorm counts 5."""
    shape, tokens = Shape(1, side, side, 768, 12), side * side
    windowed, whole = (DecomposedBias(window).cost(shape, "block").total_macs for window in (14, 0))
    norms = tokens * (24 * 768 + (2 * 256 if neck else 0))
    macs = 8 * windowed + 4 * whole + tokens * (3 * 16 * 16 * 768 + neck) + 5 * norms
    assert round(macs / 1e9, 2) == published


def test_parameters_of_sams_vit_b_encoder_are_timms() -> None:
    sam = pytest.importorskip("timm.models.vision_transformer_sam")
    with torch.device("meta"):
        theirs = sam.samvit_base_patch16()
    for block in theirs.blocks:  # windows of 14 tokens; layers 3, 6, 9 and 12 global over 64 x 64
        paper = DecomposedBias(block.window_size).cost(Shape(1, 64, 64, 768, 12))
        assert sum(parameter.numel() for parameter in block.attn.parameters()) == paper.parameters


@pytest.mark.parametrize("window", [1, -1])
def test_a_window_of_one_token_is_refused(window: int) -> None:
    reason = DecomposedBias(window).unsupported(Shape(1, 8, 8, 8, 1))
    assert reason == f"window {window} is neither 0 (the whole grid) nor at least 2"
