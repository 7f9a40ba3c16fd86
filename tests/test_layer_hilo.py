"""HiLo attention against the paper's section 3.2, head by head and window by window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitbench.case import Case
from vitbench.operators.hilo import HiLo
from vitbench.program import build
from vitbench.shape import Shape

DIM, HEADS, WIDTH = 12, 4, 3  # features of a head


def attention(q: Any, k: Any, v: Any) -> Any:
    """Of one head."""
    scores = np.exp(q @ k.T / np.sqrt(WIDTH))
    return scores / scores.sum(axis=1, keepdims=True) @ v


def hi_fi(weights: dict[str, Any], x: Any, windows: list[list[int]], heads: int) -> Any:
    """x: (N, D); windows: tokens of each. Returns (N, D_h)."""
    q, k, v = np.split(x @ weights["high.qkv.weight"].T + weights["high.qkv.bias"], 3, axis=1)
    out = np.zeros_like(q)
    for tokens in windows:
        for head in np.split(np.arange(heads * WIDTH), heads):
            here = np.ix_(tokens, head)
            out[here] = attention(q[here], k[here], v[here])
    return out @ weights["high.proj.weight"].T + weights["high.proj.bias"]


def lo_fi(weights: dict[str, Any], x: Any, windows: list[list[int]], heads: int) -> Any:
    """x: (N, D); windows: tokens of each. Returns (N, D_l)."""
    means = np.array([x[tokens].mean(axis=0) for tokens in windows])
    q = x @ weights["low.q.weight"].T + weights["low.q.bias"]
    k, v = np.split(means @ weights["low.kv.weight"].T + weights["low.kv.bias"], 2, axis=1)
    each = [attention(q[:, head], k[:, head], v[:, head]) for head in np.split(np.arange(heads * WIDTH), heads)]
    return np.concatenate(each, axis=1) @ weights["low.proj.weight"].T + weights["low.proj.bias"]


@pytest.mark.parametrize(
    ("window", "alpha", "low", "height", "width"),
    [(2, 90, 3, 4, 6), (2, 50, 2, 6, 4), (3, 74, 2, 3, 6), (2, 0, 0, 4, 6), (2, 100, 4, 4, 6)],
)
def test_it_is_hi_fi_and_lo_fi_side_by_side(window: int, alpha: int, low: int, height: int, width: int) -> None:
    program = build(Case(HiLo(window, alpha), Shape(2, height, width, DIM, HEADS), "naive", "float64"))
    weights = {name: value.numpy() for name, value in program.module.state_dict().items()}
    tokens = np.arange(height * width).reshape(height, width)
    corners = [(i, j) for i in range(0, height, window) for j in range(0, width, window)]
    windows = [tokens[i : i + window, j : j + window].ravel().tolist() for i, j in corners]
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        parts = [hi_fi(weights, x, windows, HEADS - low)] if low < HEADS else []
        parts += [lo_fi(weights, x, windows, low)] if low else []
        np.testing.assert_allclose(found, np.concatenate(parts, axis=1), rtol=0.0, atol=1e-10)


def test_the_layer_of_vit_b_has_the_published_macs_and_parameters() -> None:
    """HubHop/vit-attention-benchmark, README, HiLo of window 2 and alpha 0.9: 298.30 M and 2.20 M."""
    cost = HiLo().cost(Shape(1, 14, 14, 768, 12))
    assert f"{cost.total_macs / 1e6:.2f}" == "298.30"
    assert f"{cost.parameters / 1e6:.2f}" == "2.20"


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (HiLo(1), Shape(1, 8, 8, 8, 1), "window 1 pools nothing, as global attention does; expected 2 or more"),
        (HiLo(2, 101), Shape(1, 8, 8, 8, 1), "alpha 101 is not within 0 and 100 per cent"),
        (HiLo(2), Shape(1, 8, 7, 8, 1), "width 7 is not divisible by window 2"),
        (HiLo(3), Shape(1, 8, 9, 8, 1), "height 8 is not divisible by window 3"),
    ],
)
def test_what_it_cannot_pool_is_refused(operator: HiLo, shape: Shape, reason: str) -> None:
    assert operator.refused(shape) == reason
