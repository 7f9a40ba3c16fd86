"""Deformable attention against the paper's equations written as sums over pixels in float64; published figures."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vitbench.case import Case
from vitbench.operators.deformable import Deformable
from vitbench.program import Program, build
from vitbench.shape import Shape

Array = NDArray[np.float64]
State = dict[str, Array]
DIM, HEADS = 12, 4


def drawn(operator: Deformable, height: int, width: int) -> Program:
    """Weights of the offset network anew, so that offsets of all sizes occur."""
    program = build(Case(operator, Shape(2, height, width, DIM, HEADS), "naive", "float64"))
    generator = torch.Generator().manual_seed(7)
    for name, weight in program.module.named_parameters():
        if name.split(".")[0] in ("conv", "norm", "offset"):
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
    return program


def even(side: int) -> Array:
    return np.array([2 * i / (side - 1) - 1 for i in range(side)]) if side > 1 else np.zeros(1)


def interpolated(plane: Array, y: float, x: float) -> Array:
    """plane (h, w, ...) at a place within -1 and 1: sum of g(y, r) g(x, c) plane[r, c], g(a, b) = max(0, 1 - |a - b|).

    Beyond the plane there are zeros.
    """
    h, w = plane.shape[:2]
    rows = np.maximum(0, 1 - np.abs((y + 1) / 2 * (h - 1) - np.arange(h)))
    columns = np.maximum(0, 1 - np.abs((x + 1) / 2 * (w - 1) - np.arange(w)))
    return np.einsum("r,c,rc...->...", rows, columns, plane)


def offsets(q: Array, state: State, operator: Deformable, row: int, column: int) -> Array:
    """q of one group (h, w, D/G) -> (x, y) of the point at a row and column of the points' grid, before tanh."""
    h, w, _ = q.shape
    k, total = operator.kernel, state["conv.bias"].copy()
    for down in range(k):
        for right in range(k):
            r, c = row * operator.stride + down - k // 2, column * operator.stride + right - k // 2
            if 0 <= r < h and 0 <= c < w:
                total += state["conv.weight"][:, 0, down, right] * q[r, c]
    normal = (total - total.mean()) / np.sqrt(total.var() + 1e-5) * state["norm.weight"] + state["norm.bias"]
    gelu = np.array([value / 2 * (1 + erf(value / np.sqrt(2))) for value in normal])
    return state["offset.weight"] @ gelu


def by_the_paper(x: Array, state: State, operator: Deformable) -> Array:
    """(h, w, D) -> (N, D), head by head and query by query."""
    h, w, dim = x.shape
    d, width, per_group = dim // HEADS, dim // operator.groups, HEADS // operator.groups
    rows, columns = -(-h // operator.stride), -(-w // operator.stride)
    q = x @ state["q.weight"].T + state["q.bias"]
    places = np.empty((operator.groups, rows * columns, 2))
    sampled = np.empty((rows * columns, dim))
    for group in range(operator.groups):
        part = slice(group * width, (group + 1) * width)
        for point, (row, column) in enumerate(np.ndindex(rows, columns)):
            right, down = np.tanh(offsets(q[..., part], state, operator, row, column)) * operator.offset_range
            y, z = even(rows)[row] + down / rows, even(columns)[column] + right / columns
            places[group, point] = y, z
            sampled[point, part] = interpolated(x[..., part], y, z)
    k, v = np.split(sampled @ state["kv.weight"].T + state["kv.bias"], 2, axis=-1)
    mixed = np.empty((h * w, dim))
    for head in range(HEADS):
        one = slice(head * d, (head + 1) * d)
        for query, (row, column) in enumerate(np.ndindex(h, w)):
            ways = (np.array([even(h)[row], even(w)[column]]) - places[head // per_group]) / 2
            bias = np.array([interpolated(state["table"][head], *way) for way in ways])
            scores = np.exp(k[:, one] @ q[row, column, one] / np.sqrt(d) + bias)
            mixed[query, one] = scores / scores.sum() @ v[:, one]
    return mixed @ state["proj.weight"].T + state["proj.bias"]


@pytest.mark.parametrize(
    ("operator", "height", "width"),
    [
        (Deformable(2), 4, 5),
        (Deformable(1, stride=2, kernel=3), 4, 3),
        (Deformable(4, kernel=1, offset_range=4), 3, 4),
        (Deformable(2, stride=3), 1, 7),
        (Deformable(2, stride=4), 4, 5),
    ],
    ids=str,
)
def test_deformable_attention_is_the_papers(operator: Deformable, height: int, width: int) -> None:
    program = drawn(operator, height, width)
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        expected = by_the_paper(x.reshape(height, width, DIM), state, operator)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("operator", [Deformable(2), Deformable(2, stride=2), Deformable(1, stride=9)], ids=str)
def test_as_built_points_are_moved_to_between_the_pixels_where_gradients_do_not_jump(operator: Deformable) -> None:
    program = build(Case(operator, Shape(4, 9, 7, 64, 4), "naive", "float64"))
    with torch.inference_mode():
        places = program.module.places(program.module.q(program.inputs[0]), torch.float64)
    pixels = (places + 1) / 2 * torch.tensor([6, 8])
    assert (pixels - pixels.round()).abs().min() > 0.1
    assert (places - program.module.references(torch.float64)).abs().min() > 0.01


def test_a_layer_costs_what_hubhops_benchmark_prints_less_norms_and_sampling() -> None:
    cost, n, dim, heads = Deformable(3).cost(Shape(1, 14, 14, 768, 12)), 196, 768, 12
    # README of HubHop/vit-attention-benchmark, row DAT: 528.69 M, 2.38 M parameters; 3 groups, kernel 5, stride 1.
    # It is fvcore's count, with 5 for an element of a LayerNorm and 4 for a sampled one.
    beside = 5 * n * dim + 4 * (n * dim + heads * n * n)
    assert (f"{(cost.total_macs + beside) / 1e6:.2f}", f"{cost.parameters / 1e6:.2f}") == ("528.69", "2.38")


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (Deformable(3), "heads 4 is not divisible by 3 groups of offsets"),
        (Deformable(2, kernel=4), "kernel 4 is not odd, so that it has no middle"),
        (Deformable(2, offset_range=0), "offset_range 0 is less than 1"),
        (Deformable(0), "groups 0 is less than 1"),
    ],
)
def test_what_cannot_be_sampled_is_refused(operator: Deformable, reason: str) -> None:
    assert operator.refused(Shape(1, 4, 4, 8, 4)) == reason
