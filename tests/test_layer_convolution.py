"""A convolution of tokens against the sum that defines it, token by token."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from vitbench.case import Case
from vitbench.operators.convolution import Convolution
from vitbench.program import build
from vitbench.shape import Shape

HEIGHT, WIDTH, DIM = 4, 5, 6
SHAPE = Shape(2, HEIGHT, WIDTH, DIM, 2)


def defined(x: Any, weight: Any, bias: Any, *, depthwise: bool) -> tuple[Any, int]:
    """y[i, j] = b + sum over offsets of W[offset] x[i + offset], zeros beside the grid; and the MACs, zeros included.

    x: (h, w, D); weight: (D, D or 1, k, k).
    """
    y, macs, reach = np.zeros_like(x) + bias, 0, weight.shape[-1] // 2
    for i, j in np.ndindex(HEIGHT, WIDTH):
        for down, right in product(range(-reach, reach + 1), repeat=2):
            taken = weight[:, :, down + reach, right + reach]
            macs += taken.size
            if 0 <= i + down < HEIGHT and 0 <= j + right < WIDTH:
                seen = x[i + down, j + right]
                y[i, j] += taken[:, 0] * seen if depthwise else taken @ seen
    return y, macs


@pytest.mark.parametrize("depthwise", [0, 1])
@pytest.mark.parametrize("kernel", [1, 3, 7])
def test_it_is_the_sum_over_the_neighbours_and_costs_what_that_costs(kernel: int, depthwise: int) -> None:
    program = build(Case(Convolution(kernel, depthwise), SHAPE, "own", "float64"))
    weight, bias = (value.numpy() for value in program.module.state_dict().values())
    macs = 0
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        right, products = defined(x.reshape(HEIGHT, WIDTH, DIM), weight, bias, depthwise=bool(depthwise))
        np.testing.assert_allclose(found, right.reshape(-1, DIM), rtol=0.0, atol=1e-10)
        macs += products
    assert Convolution(kernel, depthwise).cost(SHAPE).macs == {"conv": macs}


def test_a_kernel_of_one_token_is_a_linear_layer() -> None:
    program = build(Case(Convolution(1), SHAPE, "own", "float64"))
    linear = torch.nn.functional.linear(
        program.inputs[0], program.module.conv.weight[..., 0, 0], program.module.conv.bias
    )
    torch.testing.assert_close(program.call(), linear, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (Convolution(0), Shape(1, 8, 8, 8, 1), "kernel 0 is less than 1"),
        (Convolution(4), Shape(1, 8, 8, 8, 1), "kernel 4 is not odd, so that it has no middle"),
        (Convolution(3, 2), Shape(1, 8, 8, 8, 1), "depthwise 2 is neither 0 nor 1"),
    ],
)
def test_what_has_no_convolution_is_refused(operator: Convolution, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason
