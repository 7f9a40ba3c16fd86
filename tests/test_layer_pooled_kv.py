"""Spatial-reduction attention against timm's PVT v2 with the same weights, and against the paper's equations."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch

from vitbench.case import Case
from vitbench.operators.pooled_kv import PooledKV
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 12, 3
GRIDS = [
    (2, 6, 4),
    (3, 6, 9),
    (4, 4, 8),
    (2, 5, 7),
    (3, 7, 11),
]  # ratio, height, width; some leave rows and columns over


def ours(ratio: int, height: int, width: int) -> Program:
    return build(Case(PooledKV(ratio), Shape(2, height, width, DIM, HEADS), "naive", "float64"))


@pytest.mark.parametrize(("ratio", "height", "width"), GRIDS)
def test_it_is_timms_pvt(ratio: int, height: int, width: int) -> None:
    pvt = pytest.importorskip("timm.models.pvt_v2")
    program = ours(ratio, height, width)
    theirs = pvt.Attention(DIM, HEADS, sr_ratio=ratio).double()
    state = program.module.state_dict()
    theirs.load_state_dict({name.replace("reduction", "sr"): value for name, value in state.items()})
    torch.testing.assert_close(program.call(), theirs(program.inputs[0], (height, width)).detach(), **EXACT)


@pytest.mark.parametrize(("ratio", "height", "width"), GRIDS)
def test_it_is_equations_1_to_3_of_the_paper(ratio: int, height: int, width: int) -> None:
    program = ours(ratio, height, width)
    w = {name: value.numpy() for name, value in program.module.state_dict().items()}
    weights = w["reduction.weight"].transpose(2, 3, 1, 0).reshape(ratio**2 * DIM, DIM)  # W^S: R^2 C rows
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        grid, reduced = x.reshape(height, width, DIM), []
        for i in range(0, height - ratio + 1, ratio):
            for j in range(0, width - ratio + 1, ratio):
                y = grid[i : i + ratio, j : j + ratio].reshape(-1) @ weights + w["reduction.bias"]
                y = (y - y.mean()) / np.sqrt(y.var() + 1e-5)
                reduced.append(y * w["norm.weight"] + w["norm.bias"])
        q = x @ w["q.weight"].T + w["q.bias"]
        k, v = np.split(np.array(reduced) @ w["kv.weight"].T + w["kv.bias"], 2, axis=1)
        heads = []
        for h in np.split(np.arange(DIM), HEADS):
            scores = np.exp(q[:, h] @ k[:, h].T / np.sqrt(DIM / HEADS))
            heads.append(scores / scores.sum(1, keepdims=True) @ v[:, h])
        right = np.concatenate(heads, axis=1) @ w["proj.weight"].T + w["proj.bias"]
        np.testing.assert_allclose(found, right, **EXACT)


def test_macs_are_the_formula_of_a_ratio_that_divides_both_sides() -> None:
    a, b, d, h, r = sympy.symbols("a b D H R", integer=True, positive=True)
    n = (r * a) * (r * b)
    published = 2 * n * d**2 + n * d**2 + 2 * (n / r**2) * d**2 + 2 * n * (n / r**2) * d
    assert sympy.expand(PooledKV(r).cost(Shape(1, r * a, r * b, d, h)).total_macs - published) == 0


def test_the_layer_of_vit_b_has_the_published_macs_and_parameters() -> None:
    """HubHop/vit-attention-benchmark, README, SRA: 419.56 M and 4.72 M; fvcore counts 5 for an element of the norm."""
    shape = Shape(1, 14, 14, 768, 12)
    cost = PooledKV(2).cost(shape)
    assert f"{(cost.total_macs + 5 * (7 * 7 * 768)) / 1e6:.2f}" == "419.56"
    assert f"{cost.parameters / 1e6:.2f}" == "4.72"


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (PooledKV(1), Shape(1, 8, 8, 8, 1), "ratio 1 reduces nothing, as global attention does; expected 2 or more"),
        (PooledKV(5), Shape(1, 8, 4, 8, 1), "ratio 5 leaves no key of a grid of 8 x 4 tokens"),
    ],
)
def test_what_it_cannot_reduce_is_refused(operator: PooledKV, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason
