"""Focal self-attention against the paper's equations and the authors' rolls, written with loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from vitbench.case import Case
from vitbench.operator import parse_operator
from vitbench.operators.focal import Focal
from vitbench.program import build
from vitbench.shape import Shape

Array = NDArray[np.float64]
DIM, HEADS = 8, 2


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def rolled(operator: Focal, grid: Array, top: int, left: int, window: tuple[int, int]) -> list[Array]:
    """What four rolls of the grid bring into the window from outside of it."""
    e, (height, width) = operator.expand, window
    found = []
    for down, right in ((-e, -e), (-e, e), (e, -e), (e, e)):
        moved = np.roll(grid, (down, right), axis=(0, 1))
        for row, column in np.ndindex(height, width):
            if not (0 <= row - down < height and 0 <= column - right < width):
                found.append(moved[top + row, left + column])
    return found


def keys_of(operator: Focal, grid: Array, pooled: Array, i: int, j: int, window: tuple[int, int]) -> list[Array | None]:
    """Features of window (i, j)'s keys in the order of the biases; None where a pooled window is beyond the grid."""
    height, width = window
    top, left, reach = i * height, j * width, operator.region // 2
    found: list[Array | None] = [grid[top + row, left + column] for row, column in np.ndindex(height, width)]
    if min(pooled.shape[:2]) > 1 and operator.expand:
        found += rolled(operator, grid, top, left, window)
    for row, column in np.ndindex(operator.region, operator.region):
        r, c = i + row - reach, j + column - reach
        found.append(pooled[r, c] if 0 <= r < pooled.shape[0] and 0 <= c < pooled.shape[1] else None)
    return found


def bias_of(state: dict[str, Array], window: tuple[int, int], query: int, head: int) -> Array:
    """B of one query: by offset inside the window, each of its own around it, one a pooled window."""
    height, width = window
    row, column = divmod(query, width)
    inside = [
        state["table"][(row - r + height - 1) * (2 * width - 1) + column - c + width - 1, head]
        for r, c in np.ndindex(height, width)
    ]
    around = state["surround"][head, query] if "surround" in state else []
    return np.concatenate((inside, around, state["far"][head, 0]))


def by_the_paper(operator: Focal, x: Array, state: dict[str, Array]) -> Array:
    """(h, w, D) -> (h, w, D)."""
    (h, w, dim), d = x.shape, x.shape[-1] // HEADS
    height, width = min(operator.window, h), min(operator.window, w)
    grid = np.pad(x, ((0, -h % height), (0, -w % width), (0, 0)))
    down, across = grid.shape[0] // height, grid.shape[1] // width
    mixed, pooled = np.empty_like(grid), np.empty((down, across, dim))
    for i, j in np.ndindex(down, across):
        cut = grid[i * height : (i + 1) * height, j * width : (j + 1) * width].reshape(-1, dim)
        pooled[i, j] = state["pool.weight"][0] @ cut + state["pool.bias"]
    for i, j in np.ndindex(down, across):
        found = keys_of(operator, grid, pooled, i, j, (height, width))
        there = np.array([key is not None for key in found])
        kv = np.array([key for key in found if key is not None]) @ state["kv.weight"].T + state["kv.bias"]
        for query in range(height * width):
            place = i * height + query // width, j * width + query % width
            q = grid[place] @ state["q.weight"].T + state["q.bias"]
            for head in range(HEADS):
                one = slice(head * d, (head + 1) * d)
                bias = bias_of(state, (height, width), query, head)[there]
                weights = softmax(kv[:, :dim][:, one] @ q[one] / np.sqrt(d) + bias)
                mixed[place][one] = weights @ kv[:, dim:][:, one]
    return (mixed @ state["proj.weight"].T + state["proj.bias"])[:h, :w]


CASES = [
    ("focal3-expand1", 6, 9),
    ("focal3-expand2-region5", 7, 8),  # padded
    ("focal2-expand1-region1", 4, 6),
    ("focal3", 5, 4),  # each roll brings whole windows
    ("focal3-expand0", 5, 6),
    ("focal4-expand2", 6, 3),  # one window covers a side: nothing is around
    ("focal4-expand1", 3, 4),
]


@pytest.mark.parametrize(("text", "height", "width"), CASES)
def test_focal_attention_is_the_papers(text: str, height: int, width: int) -> None:
    operator = parse_operator(text)
    program = build(Case(operator, Shape(2, height, width, DIM, HEADS), "naive", "float64"))
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        expected = by_the_paper(operator, x.reshape(height, width, DIM), state)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("text", "height", "width"), [*CASES, ("focal4-expand3", 17, 9), ("focal3-region7", 10, 14)])
def test_useful_pairs_are_those_of_real_tokens_and_windows(text: str, height: int, width: int) -> None:
    operator = parse_operator(text)
    rows, columns = operator.axes(Shape(1, height, width, DIM, HEADS))
    grid = np.zeros((rows.padded, columns.padded))
    grid[:height, :width] = 1  # real
    window, pooled, pairs = (rows.window, columns.window), np.ones((rows.windows, columns.windows)), 0
    for i, j in np.ndindex(*pooled.shape):
        keys = sum(key for key in keys_of(operator, grid, pooled, i, j, window) if key is not None)
        queries = grid[i * window[0] : (i + 1) * window[0], j * window[1] : (j + 1) * window[1]].sum()
        pairs += queries * keys
    assert operator.cost(Shape(3, height, width, DIM, HEADS)).useful_score_elements == 3 * HEADS * pairs


def test_macs_are_those_of_window_attention_more_keys_and_pooling() -> None:
    a, b, d, m, e = sympy.symbols("a b D M e", integer=True, positive=True)
    n = (a + 1) * m * (b + 1) * m
    keys = m**2 + 4 * (m**2 - (m - e) ** 2) + 9
    published = 2 * n * keys * d + 4 * n * d**2 + n * d + 2 * (n / m**2) * d**2
    macs = Focal(m, e).cost(Shape(1, (a + 1) * m, (b + 1) * m, d, 2)).total_macs
    assert sympy.expand(macs - published) == 0


def test_a_layer_costs_what_hubhops_benchmark_prints_less_queries_of_pooled_windows() -> None:
    cost = Focal(7).cost(Shape(1, 14, 14, 768, 12))
    # README of HubHop/vit-attention-benchmark, row Focal: 526.85 M, 2.44 M parameters; expand 3, region 3, pooled by a
    # linear layer. Its code projects the 4 pooled windows to queries too, and drops them.
    dropped = 4 * 768**2
    assert (f"{(cost.total_macs + dropped) / 1e6:.2f}", f"{cost.parameters / 1e6:.2f}") == ("526.85", "2.44")


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (Focal(0), "window 0 is less than 1"),
        (Focal(2), "expand 3 is not within 0 and window 2"),
        (Focal(3, expand=-1), "expand -1 is not within 0 and window 3"),
        (Focal(3, region=4), "region 4 is not odd, so that it has no middle"),
    ],
)
def test_what_has_no_focal_window_is_refused(operator: Focal, reason: str) -> None:
    assert operator.refused(Shape(1, 4, 4, 8, 4)) == reason
