"""Rotary positions against timm's DINOv3 form with the same weights, and by what they are for.

timm makes its angles in float32: they are compared to that precision, and then its attention is given ours.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.operators.rope import Rope
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 24, 3
GRIDS = [(5, 7, 0), (5, 7, 1), (6, 6, 5), (1, 4, 1)]


def ours(height: int, width: int, prefix: int, dim: int = DIM) -> Program:
    return build(Case(Rope(), Shape(2, height, width, dim, HEADS, prefix), "naive", "float64"))


@pytest.mark.parametrize(("height", "width", "prefix"), GRIDS)
def test_rotary_attention_is_timms_dinov3(height: int, width: int, prefix: int) -> None:
    pytest.importorskip("timm")
    from timm.layers import AttentionRope, RotaryEmbeddingDinoV3

    program = ours(height, width, prefix)
    both = [torch.cat((table, table), dim=-1)[prefix:] for table in (program.module.sin, program.module.cos)]
    rope = torch.cat(both, dim=-1)
    made = RotaryEmbeddingDinoV3(DIM // HEADS).get_embed([height, width])
    torch.testing.assert_close(rope, made, rtol=0.0, atol=2e-6, check_dtype=False)
    theirs = AttentionRope(DIM, HEADS, num_prefix_tokens=prefix, rotate_half=True).double()
    theirs.load_state_dict(program.module.state_dict())
    torch.testing.assert_close(program.call(), theirs(program.inputs[0], rope).detach(), **EXACT)


@pytest.mark.parametrize(("height", "width", "prefix"), GRIDS)
def test_rotary_attention_is_timms_eva_where_no_key_has_a_bias(height: int, width: int, prefix: int) -> None:
    pytest.importorskip("timm")
    from timm.layers import RotaryEmbeddingDinoV3
    from timm.models.eva import EvaAttention

    program = ours(height, width, prefix)
    with torch.no_grad():
        program.module.qkv.bias[DIM : 2 * DIM] = 0
    theirs = EvaAttention(DIM, HEADS, num_prefix_tokens=prefix, scale_norm=False, rotate_half=True).double()
    state = program.module.state_dict()
    state["q_bias"], _, state["v_bias"] = state.pop("qkv.bias").chunk(3)
    theirs.load_state_dict(state)
    made = RotaryEmbeddingDinoV3(DIM // HEADS).get_embed([height, width]).double()
    torch.testing.assert_close(program.call(), theirs(program.inputs[0], made).detach(), rtol=0.0, atol=1e-6)


def test_each_pair_of_features_turns_by_its_own_axis_and_period() -> None:
    program = ours(3, 5, prefix=2, dim=48)
    d, layer = 16, program.module
    x = np.random.default_rng(0).standard_normal((17, d))
    expected = x.copy()
    for row in range(3):
        for column in range(5):
            token = 2 + row * 5 + column
            for pair in range(d // 2):
                axis, step = divmod(pair, d // 4)
                place = (2 * (row + 0.5) / 3 - 1, 2 * (column + 0.5) / 5 - 1)[axis]
                angle = 2 * np.pi * place / 100 ** (4 * step / d)
                turn = np.exp(1j * angle) * (x[token, pair] + 1j * x[token, pair + d // 2])
                expected[token, pair], expected[token, pair + d // 2] = turn.real, turn.imag
    turned = layer.turned(torch.from_numpy(x))
    torch.testing.assert_close(turned, torch.from_numpy(expected), **EXACT)


def test_a_score_depends_on_where_two_tokens_lie_to_each_other() -> None:
    layer = ours(6, 5, prefix=0).module
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(DIM // HEADS, dtype=torch.float64, generator=generator) for _ in range(2))
    q, k = (layer.turned(x.expand(30, -1)).view(6, 5, -1) for x in (q, k))
    scores = torch.einsum("ijd,mnd->ijmn", q, k)
    torch.testing.assert_close(scores[:-2, :-1, :-2, :-1], scores[2:, 1:, 2:, 1:], **EXACT)
    assert not torch.allclose(scores[0, 0, 0, 0], scores[0, 0, 0, 1])
    assert not torch.allclose(scores[0, 0, 0, 0], scores[0, 0, 1, 0])


def test_turning_costs_no_mac_and_no_parameter() -> None:
    shape = Shape(2, 16, 16, 384, 6, prefix=5)  # DINOv3's ViT-S with CLS and four registers
    rotary, plain = (operator.cost(shape) for operator in (Rope(), Global()))
    assert (rotary.macs, rotary.parameters) == (plain.macs, plain.parameters)
    assert rotary.elementwise - plain.elementwise == 2 * 2 * 256 * 384  # q and k of 2 images


def test_a_vit_with_rotary_positions_has_its_published_gmacs() -> None:
    """vit_medium_patch16_rope_reg1_gap_256 in timm's results/benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv.

    An element of a LayerNorm counts 5 there.
    """
    shape = Shape(1, 16, 16, 512, 8, prefix=1)
    norms = (12 * 2 * shape.tokens + 1) * 512  # the last one after pooling
    macs = 12 * Rope().cost(shape, "block").total_macs + 256 * 3 * 16 * 16 * 512 + 512 * 1000 + 5 * norms
    assert round(macs / 1e9, 2) == 10.63


def test_a_head_must_hold_two_axes_of_pairs() -> None:
    reason = Rope().unsupported(Shape(1, 4, 4, 18, 3))
    assert reason == "rope turns pairs of features for each of two axes, which head_dim 6 does not hold"
