"""Neighborhood attention against its definition in float64, token by token, and against masked global attention."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch
from examples import eager_backends

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.operators.neighborhood import Neighborhood
from vitbench.program import Program, build
from vitbench.shape import Shape

k, h, w, d, H = sympy.symbols("k h w d H", integer=True, positive=True)
EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 12, 3
GRIDS = [(3, 5, 7), (5, 5, 7), (5, 9, 6), (1, 3, 4), (3, 3, 3)]  # kernel, height, width


def ours(kernel: int, height: int, width: int, backend: str = "naive") -> Program:
    return build(Case(Neighborhood(kernel), Shape(2, height, width, DIM, HEADS), backend, "float64"))


def first(place: int, side: int, kernel: int) -> int:
    """Where the neighborhood of a place begins: centred, moved inward where it would leave the grid."""
    return max(0, min(place - (kernel - 1) // 2, side - kernel))


@pytest.mark.parametrize(("kernel", "height", "width"), GRIDS)
def test_it_is_the_papers_definition(kernel: int, height: int, width: int) -> None:
    program = ours(kernel, height, width)
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    x = program.inputs[0].numpy().reshape(2, height, width, DIM)
    q, k, v = np.split(x @ state["qkv.weight"].T + state["qkv.bias"], 3, axis=-1)
    q, k, v = (part.reshape(2, height, width, HEADS, -1) for part in (q, k, v))
    table = state["table"].reshape(2 * kernel - 1, 2 * kernel - 1, HEADS)
    out = np.zeros_like(q)
    for image, i, j, head in np.ndindex(2, height, width, HEADS):
        top, left = first(i, height, kernel), first(j, width, kernel)
        places = [(m, n) for m in range(top, top + kernel) for n in range(left, left + kernel)]
        scores = np.array(
            [
                q[image, i, j, head] @ k[image, m, n, head] / (DIM // HEADS) ** 0.5
                + table[m - i + kernel - 1, n - j + kernel - 1, head]
                for m, n in places
            ]
        )
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        out[image, i, j, head] = sum(w * v[image, m, n, head] for w, (m, n) in zip(weights, places, strict=True))
    expected = out.reshape(2, height * width, DIM) @ state["proj.weight"].T + state["proj.bias"]
    torch.testing.assert_close(program.call(), torch.from_numpy(expected), **EXACT)


@pytest.mark.parametrize("backend", eager_backends())
@pytest.mark.parametrize(("kernel", "height", "width"), GRIDS)
def test_it_is_global_attention_under_a_mask_of_neighborhoods(
    kernel: int, height: int, width: int, backend: str
) -> None:
    program = ours(kernel, height, width, backend)
    layer, x = program.module, program.inputs[0]
    tokens = height * width
    mask = torch.zeros(tokens, tokens, dtype=torch.bool)
    bias = torch.zeros(HEADS, tokens, tokens, dtype=torch.float64)
    for query, key in np.ndindex(tokens, tokens):
        (i, j), (m, n) = divmod(query, width), divmod(key, width)
        if 0 <= m - first(i, height, kernel) < kernel and 0 <= n - first(j, width, kernel) < kernel:
            mask[query, key] = True
            offset = (m - i + kernel - 1) * (2 * kernel - 1) + n - j + kernel - 1
            bias[:, query, key] = layer.table[offset]
    q, k, v = layer.heads(x.unsqueeze(1))
    mixed = backends["naive"].attend(q, k, v, bias=bias[None, None], mask=mask[None, None, None])
    torch.testing.assert_close(program.call(), layer.joined(mixed).squeeze(1).detach(), **EXACT)
    assert mask.sum() == tokens * kernel**2


def test_macs_are_the_published_formula_and_the_projection() -> None:
    published = 3 * h * w * d**2 + 2 * h * w * d * k**2  # Hassani 2023, table 1
    assert sympy.expand(Neighborhood(k).cost(Shape(1, h, w, d, H)).total_macs - published - h * w * d**2) == 0


def test_the_table_holds_a_row_for_every_offset() -> None:
    assert ours(5, 6, 8).module.table.shape == (9 * 9, HEADS)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (4, "kernel 4 is not odd, so that it has no middle"),
        (-1, "kernel -1 is less than 1"),
        (7, "kernel 7 is larger than a side of the 5 x 9 grid"),
    ],
)
def test_kernels_without_a_middle_or_a_grid_are_refused(kernel: int, reason: str) -> None:
    assert Neighborhood(kernel).unsupported(Shape(1, 5, 9, 8, 1)) == reason
