"""Numbers of the field's own texts that the closed forms must give.

ViT: Dosovitskiy et al. 2021 (ViT-B/16 at 224x224, table 1 and the public weights' sizes). Swin: Liu et al. 2021,
section 3.2. The sums for one MHA(768) and one block were checked against torch's FlopCounterMode on meta tensors.
"""

from __future__ import annotations

import pytest

from vitbench.case import Case
from vitbench.operator import parse_operator
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.shape import Shape, grid_of

SIDE = grid_of(224, 16)
VIT_B = Shape(1, SIDE, SIDE, 768, 12, prefix=1)
SWIN_STAGE_1 = Shape(1, grid_of(224, 4), grid_of(224, 4), 96, 3)


def test_vit_b16_has_196_patches_and_197_tokens() -> None:
    assert SIDE * SIDE == 196
    assert VIT_B.tokens == 197


def test_vit_b16_has_38809_scores_a_head_and_465708_a_layer() -> None:
    assert Global().cost(VIT_B).score_elements == 465_708
    assert Global().cost(VIT_B).score_elements // VIT_B.heads == 38_809


def test_terms_of_a_vit_layer_are_3nd2_n2d_n2d_nd2() -> None:
    n, d = 197, 768
    expected = {"qkv": 3 * n * d * d, "scores": n * n * d, "mix": n * n * d, "proj": n * d * d}
    assert Global().cost(VIT_B).macs == expected


@pytest.mark.parametrize(
    ("scope", "macs"), [("core", 59_610_624), ("layer", 524_391_936), ("block", 1_453_954_560)]
)  # MHA(768, 12 heads, N = 197), its core alone, and TransformerEncoderLayer(768)
def test_macs_of_vit_b16_by_scope(scope: str, macs: int) -> None:
    assert Global().cost(VIT_B, scope).total_macs == macs


def test_parameters_of_a_vit_b_block() -> None:
    core, layer, block = (Global().cost(VIT_B, scope).parameters for scope in ("core", "layer", "block"))
    mlp, norms = 4_722_432, 3_072
    assert (core, layer, block) == (0, 2_362_368, 7_087_872)
    assert block - layer == mlp + norms
    assert 12 * block == 85_054_464


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16, 64, 512])
def test_parameters_of_attention_do_not_depend_on_the_heads(heads: int) -> None:
    weights, biases = 1_048_576, 4 * 512
    assert Global().cost(Shape(1, 8, 8, 512, heads)).parameters == weights + biases == 1_050_624


def test_swin_windows_cut_the_scores_of_3136_tokens_64_fold() -> None:
    assert SWIN_STAGE_1.tokens == 3_136
    everywhere, windowed = (operator.cost(SWIN_STAGE_1).score_elements for operator in (Global(), Window(7)))
    assert everywhere == 64 * windowed


def test_windows_of_4_cut_the_scores_of_an_8x8_grid_from_4096_to_1024() -> None:
    grid = Shape(1, 8, 8, 32, 1)
    assert Global().cost(grid).score_elements == 4096
    assert Window(4).cost(grid).score_elements == 1024


def test_one_token_per_pixel_needs_gigabytes_of_scores() -> None:
    pixels = Shape(1, 224, 224, 64, 1)
    scores = Global().cost(pixels).score_elements
    patches = Global().cost(Shape(1, SIDE, SIDE, 64, 1)).score_elements
    assert pixels.tokens == 50_176
    assert scores == 2_517_630_976  # 2.52e9
    assert patches == 38_416
    assert scores == 65_536 * patches
    single, half = (Case(Global(), pixels, "naive", dtype).tensors().scores for dtype in ("float32", "float16"))
    assert single == 10_070_523_904  # about 10 GB
    assert half == 5_035_261_952  # about 5 GB


@pytest.mark.parametrize(("prefix", "before", "after"), [(0, 16, 256), (1, 25, 289)])
def test_halving_the_patch_side_multiplies_the_scores(prefix: int, before: int, after: int) -> None:
    coarse, fine = (Shape(1, side, side, 8, 1, prefix) for side in (grid_of(32, 16), grid_of(32, 8)))
    assert (coarse.tokens - prefix, fine.tokens - prefix) == (4, 16)
    assert Global().cost(coarse).score_elements == before
    assert Global().cost(fine).score_elements == after


def test_a_patch_that_does_not_divide_the_image_is_refused() -> None:
    with pytest.raises(ValueError, match="image 225 is not divisible by patch 16"):
        grid_of(225, 16)


@pytest.mark.parametrize(
    ("text", "macs", "parameters"),
    [("global", 521.43, 2.36), ("window7", 477.17, 2.36), ("window7-shift3", 477.17, 2.36)],
)
def test_the_rows_of_the_nearest_published_table_of_layers(text: str, macs: float, parameters: float) -> None:
    """README of HubHop/vit-attention-benchmark: 14 x 14 tokens, D = 768, 12 heads, in 10^6 (others: test_layer_*)."""
    cost = parse_operator(text).cost(Shape(1, 14, 14, 768, 12))
    assert round(cost.total_macs / 1e6, 2) == macs
    assert round(cost.parameters / 1e6, 2) == parameters
