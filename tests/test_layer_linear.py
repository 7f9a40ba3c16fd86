"""Linear attention against its paper's equations, in both orders of its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from vitbench.case import Case
from vitbench.check import TOLERANCE, error
from vitbench.operators.linear import Linear
from vitbench.program import build
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 5, 24, 3, prefix=1)


def phi(x: np.ndarray) -> np.ndarray:
    """elu(x) + 1 (equation 7)."""
    return np.where(x > 0, x + 1, np.exp(x))


def quadratic(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Each value weighted by phi(q_i) phi(k_j), over the sum of the weights (equation 4)."""
    out = np.zeros_like(v)
    for i in range(len(q)):
        weights = [phi(q[i]) @ phi(k[j]) for j in range(len(k))]
        out[i] = sum(weight * v[j] for j, weight in enumerate(weights)) / sum(weights)
    return out


def linear(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """phi(q_i) times the sum of phi(k_j) v_j^T, over phi(q_i) times the sum of phi(k_j) (equation 5)."""
    out = np.zeros_like(v)
    for i in range(len(q)):
        products, features = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1])
        for j in range(len(k)):
            products += np.outer(phi(k[j]), v[j])
            features += phi(k[j])
        out[i] = phi(q[i]) @ products / (phi(q[i]) @ features)
    return out


@pytest.mark.parametrize("attention", [quadratic, linear])
def test_the_layer_is_the_papers_equation(attention: Callable[..., np.ndarray]) -> None:
    program = build(Case(Linear(), SHAPE, "own", "float64"))
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    x, d = program.inputs[0].numpy(), SHAPE.head_dim
    q, k, v = np.split(x @ state["qkv.weight"].T + state["qkv.bias"], 3, axis=-1)
    mixed = np.zeros_like(x)
    for image in range(len(x)):
        for head in range(SHAPE.heads):
            part = (image, slice(None), slice(head * d, head * d + d))
            mixed[part] = attention(q[part], k[part], v[part])
    expected = torch.from_numpy(mixed @ state["proj.weight"].T + state["proj.bias"])
    torch.testing.assert_close(program.call(), expected, rtol=0.0, atol=1e-10)


def test_sums_larger_than_float16_holds_do_not_leave_it() -> None:
    shape = Shape(1, 64, 32, 64, 1)
    assert shape.tokens * shape.head_dim > torch.finfo(torch.float16).max  # about phi(q) times the sum of phi(k)
    case = Case(Linear(), shape, "own", "float16")
    assert error(case, build(case)) <= TOLERANCE["float16"]


def test_macs_are_linear_in_the_tokens_and_form_no_score() -> None:
    one, four = (Linear().cost(Shape(1, side, side, 24, 3)) for side in (8, 16))
    assert four.total_macs == 4 * one.total_macs
    assert four.score_elements == 0
