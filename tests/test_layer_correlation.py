"""RAFT's correlation pyramid against its equation, torchvision's, and what the paper says of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from vitbench.case import Case
from vitbench.operators.correlation import Correlation
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
SIDES = [(8, 8), (9, 11), (17, 8)]  # odd sides lose their last row or column at each level


def ours(levels: int, height: int, width: int) -> Program:
    return build(Case(Correlation(levels), Shape(2, height, width, 6, 3), "own", "float64"))


def maps(x: Tensor, height: int, width: int) -> Tensor:
    """(B, N, D) -> (B, D, height, width)."""
    return x.transpose(1, 2).reshape(len(x), -1, height, width)


@pytest.mark.parametrize(("height", "width"), SIDES)
def test_each_level_is_the_mean_of_the_dot_products_in_its_squares(height: int, width: int) -> None:
    program = ours(4, height, width)
    first, second = (x.numpy().reshape(2, height, width, 6) for x in program.inputs)
    volume = np.zeros((2, height, width, height, width))
    for h in range(6):  # equation 1: C_ijkl = sum_h g(I_1)_ijh g(I_2)_klh
        volume += first[:, :, :, None, None, h] * second[:, None, None, :, :, h]
    volume /= np.sqrt(6)  # the authors' code
    for level, found in enumerate(program.call()):
        size = 2**level
        rows, columns = height // size, width // size
        expected = np.zeros((2, height, width, rows, columns))
        for k in range(rows):
            for m in range(columns):
                square = volume[..., k * size : (k + 1) * size, m * size : (m + 1) * size]
                expected[..., k, m] = square.mean(axis=(-2, -1))
        torch.testing.assert_close(found, torch.from_numpy(expected.reshape(2, height * width, -1)), **EXACT)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 11)])
def test_the_pyramid_is_torchvisions(height: int, width: int) -> None:
    raft = pytest.importorskip("torchvision.models.optical_flow.raft")
    program = ours(3, height, width)
    block = raft.CorrBlock(num_levels=3)
    block.build_pyramid(*(maps(x, height, width) for x in program.inputs))
    for found, theirs in zip(program.call(), block.corr_pyramid, strict=True):
        # torchvision takes the root in float32
        torch.testing.assert_close(found, theirs.reshape(found.shape), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("height", "width"), SIDES)
def test_pooled_correlations_are_correlations_with_pooled_features(height: int, width: int) -> None:
    """Teed and Deng 2020, section 3.2: inner product and average pooling are linear."""
    program = ours(4, height, width)
    first, second = program.inputs
    for level, found in enumerate(program.call()):
        pooled = avg_pool2d(maps(second, height, width), 2**level).flatten(2)
        torch.testing.assert_close(found, first @ pooled / 6**0.5, **EXACT)


def test_a_pyramid_of_sintel_has_the_papers_sizes() -> None:
    """H x W x H/2^k x W/2^k, at an eighth of 440x1024 pixels with 256 features."""
    frames = Shape(1, 55, 128, 256, 1)
    assert Correlation().pixels(frames) == (55 * 128, 27 * 64, 13 * 32, 6 * 16)
    assert Correlation().cost(frames).macs == {"scores": 7040**2 * 256}
    assert Correlation().cost(frames).score_elements == 49_561_600


def test_the_volume_is_quadratic_in_the_pixels_and_has_no_parameters() -> None:
    small, large = (Correlation().cost(Shape(1, side, side, 256, 1)) for side in (32, 64))
    assert large.total_macs == 16 * small.total_macs
    assert large.score_elements == 16 * small.score_elements
    assert large.parameters == 0
    features, volume = 2 * 64**2 * 256, 64**4
    assert large.moved_elements == features + volume * (64 + 16 + 4 + 1) // 64


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (Correlation(0), Shape(1, 8, 8, 8, 1), "levels 0 is less than 1"),
        (Correlation(), Shape(1, 9, 7, 8, 1), "4 levels need sides of at least 2^3 tokens, not 7"),
    ],
)
def test_what_has_no_pyramid_is_refused(operator: Correlation, shape: Shape, reason: str) -> None:
    assert (operator.refused(shape) or "").startswith(reason)
