"""Packed sequences against torch's module, the padded batch of the same images, and each image alone."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from examples import eager_backends
from test_layer_masked import EXACT, ours, torchs
from torch import Tensor

from vitbench.operators.global_ import Global
from vitbench.operators.packed import Packed
from vitbench.operators.padding import Padding
from vitbench.shape import Shape

SIDES = [(1, 4, 6), (2, 3, 9), (3, 5, 6), (4, 2, 20), (5, 1, 15)]  # images, height, width


def image_of(column: int, images: int, width: int) -> int:
    """The image that a column of the packed grid belongs to."""
    share = width // sum(range(1, images + 1))
    owners = [image for image in range(images) for _ in range(share * (image + 1))]
    return owners[column]


def apart(images: int, height: int, width: int) -> Tensor:
    """(N, N): pairs of tokens of different images."""
    owners = [image_of(column, images, width) for _ in range(height) for column in range(width)]
    return torch.tensor([[mine != yours for yours in owners] for mine in owners])


@pytest.mark.parametrize("backend", eager_backends())
def test_packed_attention_is_torchs_under_a_mask_of_other_images(backend: str) -> None:
    program = ours(Packed(3), Shape(2, 4, 12, 24, 3), backend)
    torch.testing.assert_close(program.call(), torchs(program, attn_mask=apart(3, 4, 12)), **EXACT)


@pytest.mark.parametrize("backend", eager_backends())
def test_images_come_out_of_a_pack_as_out_of_a_padded_batch_and_as_alone(backend: str) -> None:
    images, height, widths, dim, packs = 4, 3, (2, 4, 6, 8), 24, 2
    pack = ours(Packed(images), Shape(packs, height, sum(widths), dim, 3), backend)
    padded = ours(Padding(images), Shape(packs * images, height, max(widths), dim, 3), backend)
    state = pack.module.state_dict()
    padded.module.load_state_dict(state)
    x = pack.inputs[0].view(packs, height, -1, dim)
    batch = x.new_full((packs, images, height, max(widths), dim), 5.0)
    for number, image in enumerate(x.split(widths, dim=2)):
        batch[:, number, :, : widths[number]] = image
    packed = pack.call().view(packs, height, -1, dim).split(widths, dim=2)
    with torch.inference_mode():
        from_padded = padded.module(batch.view(packs * images, -1, dim)).view_as(batch)
    for number, width in enumerate(widths):
        alone = ours(Global(), Shape(packs, height, width, dim, 3), backend).module
        alone.load_state_dict(state)
        with torch.inference_mode():
            by_itself = alone(batch[:, number, :, :width].reshape(packs, -1, dim)).view(packs, height, width, dim)
        torch.testing.assert_close(packed[number], from_padded[:, number, :, :width], **EXACT)
        torch.testing.assert_close(packed[number], by_itself, **EXACT)


@pytest.mark.parametrize(("images", "height", "width"), SIDES)
def test_useful_pairs_are_those_within_an_image(images: int, height: int, width: int) -> None:
    cost = Packed(images).cost(Shape(3, height, width, 8, 2))
    assert cost.useful_score_elements == 3 * 2 * int((~apart(images, height, width)).sum())
    assert cost.score_elements == 3 * 2 * (height * width) ** 2


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_packing_saves_padding_in_the_projections_and_pays_for_pairs_of_other_images(k: int) -> None:
    pack = Packed(k).cost(Shape(5, 6, k * (k + 1) // 2 * 2, 24, 3))
    padded = Padding(k).cost(Shape(5 * k, 6, k * 2, 24, 3))
    assert pack.useful_score_elements == padded.useful_score_elements
    assert Fraction(pack.score_elements, padded.score_elements) == Fraction((k + 1) ** 2, 4 * k)
    for term in ("qkv", "proj"):
        assert Fraction(pack.macs[term], padded.macs[term]) == Fraction(k + 1, 2 * k)


@pytest.mark.parametrize(
    ("images", "shape", "reason"),
    [
        (0, Shape(1, 4, 4, 8, 2), "images 0 is less than 1"),
        (4, Shape(1, 4, 14, 8, 2), "width 14 is not divisible by 10, the shares of 4 images"),
    ],
)
def test_a_grid_that_the_images_cannot_share_is_refused(images: int, shape: Shape, reason: str) -> None:
    assert Packed(images).refused(shape) == reason
