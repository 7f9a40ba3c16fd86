"""SAGAN's self-attention against the equations of Zhang et al. 2019."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy
import torch
from numpy.typing import NDArray

from vitbench.case import Case
from vitbench.operators.sagan import Sagan
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
SHAPE = Shape(2, 5, 4, 16, 4)
PAPER, CODE = Sagan(), Sagan(values=2, subsample=1)


def ours(operator: Sagan) -> Program:
    return build(Case(operator, SHAPE, "naive", "float64"))


def pooled(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, c) -> (M, c): the largest of 2x2 of a 5x4 grid."""
    grid = x.reshape(5, 4, -1)
    cells = product(range(2), range(2))
    return np.stack([grid[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, -1).max(axis=0) for i, j in cells])


def equation_3(operator: Sagan, x: NDArray[np.float64], program: Program) -> NDArray[np.float64]:
    """y of one image (N, C), location by location."""
    w = {name: value.numpy() for name, value in program.module.state_dict().items()}
    keys, values = x @ w["f.weight"].T, x @ w["h.weight"].T
    if operator.subsample:
        keys, values = pooled(keys), pooled(values)
    y = []
    for x_j in x:
        s_j = np.array([f_i @ (w["g.weight"] @ x_j) for f_i in keys])  # s_ij = f(x_i)^T g(x_j)
        beta_j = np.exp(s_j) / np.exp(s_j).sum()  # equation 1
        o_j = w["v.weight"] @ sum(beta_ji * h_i for beta_ji, h_i in zip(beta_j, values, strict=True))  # equation 2
        y.append(w["gamma"][0] * o_j + x_j)
    return np.stack(y)


@pytest.mark.parametrize("operator", [PAPER, CODE, Sagan(values=1), Sagan(subsample=1)], ids=str)
def test_attention_is_the_papers_equations(operator: Sagan) -> None:
    program = ours(operator)
    expected = np.stack([equation_3(operator, x, program) for x in program.inputs[0].numpy()])
    torch.testing.assert_close(program.call(), torch.from_numpy(expected), **EXACT)


def test_where_gamma_is_0_as_at_the_start_of_training_the_input_goes_through() -> None:
    program = ours(PAPER)
    assert not torch.allclose(program.call(), program.inputs[0])
    with torch.no_grad():
        program.module.gamma.zero_()
    torch.testing.assert_close(program.call(), program.inputs[0], **EXACT)


def test_queries_keys_and_values_have_an_eighth_of_the_channels_and_in_the_code_values_have_half() -> None:
    image = Shape(1, 32, 32, 256, 1)  # feat32, the level that the paper chooses
    (paper,), (code,) = (operator.attentions(image) for operator in (PAPER, CODE))
    assert paper.q == paper.k == paper.v == (1, 1, 1, 1024, 32)
    assert (code.q, code.k, code.v) == ((1, 1, 1, 1024, 32), (1, 1, 1, 256, 32), (1, 1, 1, 256, 128))
    assert PAPER.cost(image).parameters == 4 * 256 * 32 + 1


def test_the_codes_pooling_leaves_a_quarter_of_the_pairs() -> None:
    image = Shape(3, 32, 32, 256, 1)
    whole, sampled = (Sagan(2, subsample).cost(image) for subsample in (0, 1))
    assert 4 * sampled.score_elements == whole.score_elements == 3 * 1024**2
    assert sampled.macs["qkv"] == whole.macs["qkv"]


@pytest.mark.parametrize("values", [1, 2, 8])
def test_macs_are_the_formula_of_the_docstring(values: int) -> None:
    h, w, c = sympy.symbols("h w c", integer=True, positive=True)
    n, r = 2 * h * 2 * w, sympy.Integer(values)
    for subsample, m in ((0, n), (1, h * w)):
        found = Sagan(values, subsample).cost(Shape(1, 2 * h, 2 * w, 8 * c, 1)).total_macs
        quarter, eighth = sympy.Rational(1, 4), sympy.Rational(1, 8)
        published = (quarter + 2 / r) * n * (8 * c) ** 2 + (eighth + 1 / r) * n * m * 8 * c
        assert sympy.simplify(found - published) == 0


def test_heads_of_the_shape_change_nothing() -> None:
    one, twelve = (Shape(2, 6, 6, 24, heads) for heads in (1, 12))
    assert PAPER.cost(one) == PAPER.cost(twelve)
    assert PAPER.attentions(one) == PAPER.attentions(twelve)


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (Sagan(values=0), Shape(1, 6, 6, 8, 1), "values 0 is less than 1"),
        (Sagan(subsample=2), Shape(1, 6, 6, 8, 1), "subsample 2 is neither 0 nor 1"),
        (Sagan(), Shape(1, 6, 6, 12, 1), "dim 12 is not divisible by 8"),
        (Sagan(values=3), Shape(1, 6, 6, 8, 1), "dim 8 is not divisible by 3"),
        (Sagan(subsample=1), Shape(1, 1, 6, 8, 1), "a 2x2 max-pool leaves no token of 1x6"),
    ],
)
def test_what_it_does_not_have_is_refused(operator: Sagan, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason
