"""Cross-shaped windows against the paper's equations written with loops in float64, and published figures."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from vitbench.case import Case
from vitbench.operators.cross_shaped import CrossShaped
from vitbench.program import build
from vitbench.shape import Shape

Array = NDArray[np.float64]


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    """(n, d) each."""
    return softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v


def lepe(v: Array, kernel: Array, bias: Array) -> Array:
    """v of one stripe (rows, columns, C), kernel (C, 1, 3, 3): neighbours inside the stripe alone."""
    rows, columns, _ = v.shape
    out = np.zeros_like(v) + bias
    for row, column in np.ndindex(rows, columns):
        for r, c in np.ndindex(rows, columns):
            if abs(r - row) <= 1 and abs(c - column) <= 1:
                out[row, column] += v[r, c] * kernel[:, 0, r - row + 1, c - column + 1]
    return out


def by_the_paper(x: Array, state: dict[str, Array], stripe: int, heads: int) -> Array:
    """(h, w, D) -> (h, w, D): equations 2 to 5, head by head."""
    h, w, dim = x.shape
    d = dim // heads
    q, k, v = np.split(x @ state["qkv.weight"].T + state["qkv.bias"], 3, axis=-1)
    mixed = np.empty_like(x)
    for head in range(heads):
        one = slice(head * d, (head + 1) * d)
        horizontal = head < heads // 2
        name = "horizontal" if horizontal else "vertical"
        channels = slice(head % (heads // 2) * d, (head % (heads // 2) + 1) * d)
        kernel, bias = state[f"{name}.lepe.weight"][channels], state[f"{name}.lepe.bias"][channels]
        for start in range(0, h if horizontal else w, stripe):
            cut = slice(start, start + stripe)
            place = (cut, slice(None), one) if horizontal else (slice(None), cut, one)
            flat = [part[place].reshape(-1, d) for part in (q, k, v)]
            mixed[place] = attention(*flat).reshape(v[place].shape) + lepe(v[place], kernel, bias)
    return mixed @ state["proj.weight"].T + state["proj.bias"]


@pytest.mark.parametrize(
    ("stripe", "height", "width", "heads"), [(2, 4, 6, 4), (3, 6, 3, 2), (1, 2, 5, 2), (4, 4, 4, 2)]
)
def test_cross_shaped_attention_is_the_papers(stripe: int, height: int, width: int, heads: int) -> None:
    program = build(Case(CrossShaped(stripe), Shape(2, height, width, 12, heads), "naive", "float64"))
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    for x, found in zip(program.inputs[0].numpy(), program.call().numpy(), strict=True):
        expected = by_the_paper(x.reshape(height, width, 12), state, stripe, heads)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-12)


def test_macs_are_the_published_formula_and_lepe() -> None:
    a, b, c, sw = sympy.symbols("a b C sw", integer=True, positive=True)
    h, w = a * sw, b * sw
    macs = CrossShaped(sw).cost(Shape(1, h, w, c, 2)).macs
    assert sympy.expand(sum(macs.values()) - macs["lepe"] - h * w * c * (4 * c + sw * h + sw * w)) == 0
    assert macs["lepe"] == 9 * h * w * c


def test_a_layer_costs_what_hubhops_benchmark_prints() -> None:
    cost = CrossShaped(7).cost(Shape(1, 14, 14, 768, 12))
    # README of HubHop/vit-attention-benchmark, row Cross Window: 493.28 M MACs, 2.37 M parameters.
    assert (f"{cost.total_macs / 1e6:.2f}", f"{cost.parameters / 1e6:.2f}") == ("493.28", "2.37")


@pytest.mark.parametrize(
    ("stripe", "shape", "reason"),
    [
        (0, Shape(1, 4, 4, 8, 2), "stripe 0 is less than 1"),
        (3, Shape(1, 4, 6, 8, 2), "height 4 is not divisible by stripe 3"),
        (3, Shape(1, 6, 4, 8, 2), "width 4 is not divisible by stripe 3"),
        (2, Shape(1, 4, 4, 8, 1), "heads 1 is not even: half of them attend in each direction"),
    ],
)
def test_what_cannot_be_cut_into_stripes_is_refused(stripe: int, shape: Shape, reason: str) -> None:
    assert CrossShaped(stripe).refused(shape) == reason
