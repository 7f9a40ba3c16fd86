"""Attention in a padded batch against torch's module with the same weights, and what padding may not do."""

from __future__ import annotations

import pytest
import torch
from examples import eager_backends
from test_layer_masked import EXACT, ours, torchs
from torch import Tensor

from vitbench.operators.global_ import Global
from vitbench.operators.padding import Padding
from vitbench.program import Program
from vitbench.shape import Shape

SHAPE = Shape(6, 4, 9, 24, 3)  # of 3, 6, 9, 3, 6 and 9 columns
SIDES = [(1, 1, 1, 1), (1, 2, 3, 5), (2, 4, 4, 6), (3, 3, 2, 3), (4, 8, 3, 8), (5, 5, 1, 10)]  # images, batch, grid


def real(images: int, shape: Shape) -> Tensor:
    """(B, N): whether a token is of its image, not of its padding."""
    token = [(row, column) for row in range(shape.height) for column in range(shape.width)]
    rows = [
        [column * images < shape.width * (image % images + 1) for _, column in token] for image in range(shape.batch)
    ]
    return torch.tensor(rows)


@pytest.mark.parametrize("backend", eager_backends())
def test_attention_in_a_padded_batch_is_torchs_with_its_key_padding_mask(backend: str) -> None:
    program = ours(Padding(3), SHAPE, backend)
    expected = torchs(program, key_padding_mask=~real(3, SHAPE))
    torch.testing.assert_close(program.call(), expected, **EXACT)


@pytest.mark.parametrize("backend", eager_backends())
def test_what_stands_in_the_padding_changes_no_real_token(backend: str) -> None:
    program, own = ours(Padding(3), SHAPE, backend), real(3, SHAPE)
    x = torch.where(own[..., None], program.inputs[0], 7.0)
    change = (Program(program.module, (x,), training=False).call() - program.call()).abs().amax(2)
    assert change[own].max() < 1e-12
    assert change[~own].min() > 1e-6  # padding still asks, and gets rows of its own


def test_each_image_of_a_padded_batch_is_as_if_it_were_alone() -> None:
    program = ours(Padding(3), SHAPE)
    result, x = program.call().view(6, 4, 9, 24), program.inputs[0].view(6, 4, 9, 24)
    for image, width in enumerate((3, 6, 9, 3, 6, 9)):
        alone = ours(Global(), Shape(1, 4, width, 24, 3))
        alone.module.load_state_dict(program.module.state_dict())
        expected = alone.module(x[image, :, :width].reshape(1, -1, 24)).detach().view(4, width, 24)
        torch.testing.assert_close(result[image, :, :width], expected, **EXACT)


@pytest.mark.parametrize(("images", "batch", "height", "width"), SIDES)
def test_useful_pairs_are_those_of_two_real_tokens(images: int, batch: int, height: int, width: int) -> None:
    shape = Shape(batch, height, width, 8, 2)
    cost, tokens = Padding(images).cost(shape), real(images, shape).sum(1)
    assert cost.useful_score_elements == 2 * int((tokens**2).sum())
    assert cost.score_elements == 2 * batch * (height * width) ** 2


def test_padding_is_computed_as_if_it_were_real() -> None:
    assert Padding(3).cost(SHAPE).macs == Global().cost(SHAPE).macs


@pytest.mark.parametrize(
    ("images", "shape", "reason"),
    [
        (0, SHAPE, "images 0 is less than 1"),
        (2, SHAPE, "width 9 is not divisible by 2 images of different widths"),
        (9, SHAPE, "batch 6 is not divisible by 9 images of different widths"),
    ],
)
def test_a_batch_that_the_widths_do_not_divide_is_refused(images: int, shape: Shape, reason: str) -> None:
    assert Padding(images).refused(shape) == reason
