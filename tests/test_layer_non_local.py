"""The non-local block against the equations of Wang et al. 2018, against timm's, and its published claims."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy
import torch
from numpy.typing import NDArray

from vitbench.case import Case
from vitbench.operators.non_local import NonLocal
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
KINDS = ("embedded", "gaussian", "dot")
DIM = 12
Array = NDArray[np.float64]


def ours(operator: NonLocal, height: int, width: int, dim: int = DIM) -> Program:
    backend = "naive" if operator.attentions(Shape(2, height, width, dim, 3)) else "own"
    return build(Case(operator, Shape(2, height, width, dim, 3), backend, "float64"))


def subsampled(x: Array) -> Array:
    """(T, H, W, C) -> (T, H // 2, W // 2, C): the largest of 2x2 in each frame."""
    frames, height, width, dim = x.shape
    out = np.empty((frames, height // 2, width // 2, dim))
    for t, i, j in product(*map(range, out.shape[:3])):
        out[t, i, j] = x[t, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, dim).max(axis=0)
    return out


def equation_6(operator: NonLocal, x: Array, program: Program) -> Array:
    """z of one clip (T, H, W, C), by sums over pairs."""
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    if operator.kind == "gaussian":
        g = state["g.weight"], state["g.bias"]
    else:
        half = DIM // 2
        phi, g = ((state["phi_g.weight"][rows], state["phi_g.bias"][rows]) for rows in (slice(half), slice(half, None)))
    seen = (subsampled(x) if operator.subsample else x).reshape(-1, DIM)
    out = []
    for x_i in x.reshape(-1, DIM):
        y, normaliser = np.zeros(DIM // 2), 0.0
        for x_j in seen:
            if operator.kind == "gaussian":
                f = np.exp(x_i @ x_j)  # equation 2
            else:
                f = (state["theta.weight"] @ x_i + state["theta.bias"]) @ (phi[0] @ x_j + phi[1])  # equation 4
                f = np.exp(f) if operator.kind == "embedded" else f  # equation 3
            y += f * (g[0] @ x_j + g[1])
            normaliser += 1.0 if operator.kind == "dot" else f
        out.append(state["z.weight"] @ (y / normaliser) + state["z.bias"] + x_i)
    return np.stack(out)


@pytest.mark.parametrize("subsample", [0, 1])
@pytest.mark.parametrize(("frames", "height", "width"), [(1, 5, 4), (2, 6, 5), (3, 6, 2)])  # frames of 5x4, 3x5, 2x2
@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_the_papers_equations(kind: str, frames: int, height: int, width: int, subsample: int) -> None:
    operator = NonLocal(frames, kind, subsample)
    program = ours(operator, height, width)
    clips = program.inputs[0].numpy().reshape(2, frames, height // frames, width, DIM)
    expected = np.stack([equation_6(operator, clip, program) for clip in clips])
    torch.testing.assert_close(program.call(), torch.from_numpy(expected), **EXACT)


def test_the_embedded_gaussian_is_timms_block_without_scale_and_norm() -> None:
    timm = pytest.importorskip("timm.layers.non_local_attn")
    program = ours(NonLocal(), 5, 4)
    theirs = timm.NonLocalAttn(DIM, use_scale=False, rd_channels=DIM // 2).double()
    theirs.norm = torch.nn.Identity()
    state = program.module.state_dict()
    renamed = {}
    for kind in ("weight", "bias"):
        phi, g = state[f"phi_g.{kind}"].chunk(2)
        each = {"t": state[f"theta.{kind}"], "p": phi, "g": g, "z": state[f"z.{kind}"]}
        for name, value in each.items():
            renamed[f"{name}.{kind}"] = value[:, :, None, None] if kind == "weight" else value
    theirs.load_state_dict(renamed)
    x = program.inputs[0].transpose(1, 2).reshape(2, DIM, 5, 4)
    torch.testing.assert_close(program.call(), theirs(x).flatten(2).transpose(1, 2).detach(), **EXACT)


def test_raw_features_of_768_channels_attend_to_their_own_position_alone() -> None:
    program = ours(NonLocal(kind="gaussian"), 4, 4, 768)
    x, block = program.inputs[0], program.module
    with torch.no_grad():  # x_i.x_i is 768 +- 39, x_i.x_j 0 +- 28
        torch.testing.assert_close(program.call(), x + block.z(block.g(x)), **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_subsampling_leaves_a_quarter_of_the_pairs(kind: str) -> None:
    clip = Shape(8, 4 * 14, 14, 1024, 1)  # as in the authors' code: 8 clips, 4 frames of 14x14, 1024 channels
    whole, sampled = (NonLocal(4, kind, subsample).cost(clip) for subsample in (0, 1))
    assert whole.score_elements == 8 * 784**2
    assert 4 * sampled.score_elements == whole.score_elements
    for term in ("scores", "mix"):
        assert 4 * sampled.macs[term] == whole.macs[term]
    assert sampled.parameters == whole.parameters


def test_1024_channels_become_512_and_the_four_products_hold_2c2_weights() -> None:
    clip = Shape(1, 4 * 14, 14, 1024, 1)
    (attention,) = NonLocal(4).attentions(clip)
    assert attention.q == attention.k == attention.v == (1, 1, 1, 784, 512)
    assert NonLocal(4).cost(clip).parameters == 2 * 1024**2 + 3 * 512 + 1024


@pytest.mark.parametrize("kind", KINDS)
def test_macs_are_the_formula_of_the_docstring(kind: str) -> None:
    t, h, w, c = sympy.symbols("t h w c", integer=True, positive=True)
    n = t * 2 * h * 2 * w
    for subsample, m in ((0, n), (1, t * h * w)):
        found = NonLocal(t, kind, subsample).cost(Shape(1, t * 2 * h, 2 * w, c, 1)).total_macs
        half = sympy.Rational(1, 2) if kind == "gaussian" else 1
        pairs = n * m * c * (sympy.Rational(3, 2) if kind == "gaussian" else 1)
        assert sympy.simplify(found - half * (n + m) * c**2 - pairs) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_the_shape_change_nothing(kind: str) -> None:
    operator, one, twelve = NonLocal(kind=kind), Shape(2, 6, 6, 24, 1), Shape(2, 6, 6, 24, 12)
    assert (operator.cost(one), operator.attentions(one)) == (operator.cost(twelve), operator.attentions(twelve))


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (NonLocal(frames=0), Shape(1, 6, 6, 8, 1), "frames 0 is less than 1"),
        (NonLocal(frames=4), Shape(1, 6, 6, 8, 1), "height 6 is not divisible by 4 frames"),
        (NonLocal(subsample=2), Shape(1, 6, 6, 8, 1), "subsample 2 is neither 0 nor 1"),
        (NonLocal(6, subsample=1), Shape(1, 6, 6, 8, 1), "a 2x2 max-pool leaves no token of 1x6"),
        (NonLocal(), Shape(1, 6, 6, 9, 1), "dim 9 cannot be halved"),
        (NonLocal(kind="concatenation"), Shape(1, 6, 6, 8, 1), "unknown kind 'concatenation'; known: embedded, "),
    ],
)
def test_what_no_block_has_is_refused(operator: NonLocal, shape: Shape, reason: str) -> None:
    assert (operator.refused(shape) or "").startswith(reason)


def test_without_a_softmax_there_is_no_core() -> None:
    assert NonLocal(kind="dot").attentions(Shape(1, 6, 6, 8, 1)) == ()
    assert NonLocal().refused(Shape(1, 6, 6, 8, 1), "core") == "non_local has no scope 'core'; known: layer"
