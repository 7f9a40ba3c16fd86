"""FAVOR+ against the paper's definition, against the softmax it approximates, and against the figures of others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from vitbench.case import Case
from vitbench.operators.performer import Performer
from vitbench.program import Program, build
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 5, 24, 3, prefix=1)  # d = 8


def ours(features: int, dtype: str = "float64", seed: int = 0) -> Program:
    return build(Case(Performer(features), SHAPE, "own", dtype), seed=seed)


def phi(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Positive features: exp(-|x|^2 / 2) / sqrt(m) (exp(w_1 x), ..., exp(w_m x)) (equations 5 and 7)."""
    return np.exp(-x @ x / 2) / np.sqrt(len(w)) * np.exp(w @ x)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights phi(q_i) phi(k_j) of the values over their sum (equation 4), q and k scaled for 1 / sqrt(d)."""
    q, k, out = q / q.shape[1] ** 0.25, k / k.shape[1] ** 0.25, np.zeros_like(v)
    for i in range(len(q)):
        weights = [phi(q[i], w) @ phi(k[j], w) for j in range(len(k))]
        out[i] = sum(weight * v[j] for j, weight in enumerate(weights)) / sum(weights)
    return out


def defined(program: Program, dtype: str = "float64") -> torch.Tensor:
    """What the program must give, worked out in the dtype."""
    state = {name: value.numpy().astype(dtype) for name, value in program.module.state_dict().items()}
    x, d = program.inputs[0].numpy().astype(dtype), SHAPE.head_dim
    w = state["projection"] * d**0.25
    q, k, v = np.split(x @ state["qkv.weight"].T + state["qkv.bias"], 3, axis=-1)
    mixed = np.zeros_like(x)
    for image in range(len(x)):
        for head in range(SHAPE.heads):
            part = (image, slice(None), slice(head * d, head * d + d))
            mixed[part] = attention(q[part], k[part], v[part], w)
    return torch.from_numpy(mixed @ state["proj.weight"].T + state["proj.bias"])


def test_the_layer_is_the_papers_definition() -> None:
    for features in (1, 8, 21):
        program = ours(features)
        torch.testing.assert_close(program.call(), defined(program), rtol=0.0, atol=1e-10)


@pytest.mark.parametrize(("scale", "shift"), [(20, 0), (1, 12)], ids=["long queries and keys", "no short key"])
def test_features_too_small_for_float32_do_not_leave_it(scale: int, shift: int) -> None:
    program = ours(21, "float32")
    program.inputs[0].mul_(scale)
    with torch.no_grad():
        program.module.qkv.bias[SHAPE.dim : 2 * SHAPE.dim] += shift
    with np.errstate(all="ignore"):
        assert not defined(program, "float32").isfinite().all()
    right = defined(program)
    assert (program.call() - right).abs().max() < 1e-3 * right.abs().max()


def test_sums_larger_than_float16_holds_do_not_leave_it() -> None:
    case = Case(Performer(512), Shape(1, 16, 16, 8, 1), "own", "float16")
    program = build(case)
    with torch.no_grad():  # no key differs from another: every feature is the same
        program.module.qkv.weight[:16] = 0
        program.module.qkv.bias[:16] = 0
    assert torch.finfo(torch.float16).max < 512 * 256  # a query's features, each 1, times the sum of 256 keys'
    v = program.module.qkv(program.inputs[0])[..., 16:].mean(1, keepdim=True)
    torch.testing.assert_close(program.call(), program.module.proj(v).expand(-1, 256, -1), rtol=0.0, atol=2e-3)


def softmax_error(features: int, seed: int) -> float:
    """Root mean square of the difference to softmax attention over that of softmax attention."""
    program = ours(features, seed=seed)
    theirs = nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64)
    renamed = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias"}
    state = {name: value for name, value in program.module.state_dict().items() if name != "projection"}
    theirs.load_state_dict({renamed.get(name, name.replace("proj", "out_proj")): v for name, v in state.items()})
    x = program.inputs[0]
    right = theirs(x, x, x, need_weights=False)[0].detach()
    return float((program.call() - right).square().mean().sqrt() / right.square().mean().sqrt())


def test_more_features_come_closer_to_softmax_attention() -> None:
    few, many = (np.mean([softmax_error(features, seed) for seed in range(8)]) for features in (256, 64 * 256))
    assert many < 0.03
    assert 4 < few / many < 16  # an error falls with the square root of m: 8 on paper


def test_directions_are_orthogonal_and_norms_those_of_normal_rows() -> None:
    d, blocks = SHAPE.head_dim, 500
    w = ours(d * blocks).module.projection.double() * d**0.25
    gram = w.view(blocks, d, d) @ w.view(blocks, d, d).transpose(-2, -1)
    norms = gram.diagonal(dim1=-2, dim2=-1)  # squared: chi-square of d degrees, mean d, variance 2d
    assert (gram - torch.diag_embed(norms)).abs().max() < 1e-4 * norms.max()  # drawn in float32
    assert abs(norms.mean() - d) < 5 * (2 * d / norms.numel()) ** 0.5
    assert 0.8 < norms.var() / (2 * d) < 1.2


def test_macs_and_parameters_are_those_of_hubhop_but_for_half_a_product_of_the_quotient() -> None:
    """HubHop/vit-attention-benchmark: Performer, m = 256, 14 x 14 tokens, D = 768, 12 heads: 617.24 M and 2.36 M.

    There the quotient is a third factor of an einsum, for which fvcore counts half a MAC for each of N x D elements;
    here it is elementwise.
    """
    shape = Shape(1, 14, 14, 768, 12)
    cost = Performer(256).cost(shape)
    assert round((cost.total_macs + shape.tokens * shape.dim // 2) / 1e6, 2) == 617.24
    assert round(cost.parameters / 1e6, 2) == 2.36


def test_no_feature_at_all_is_refused() -> None:
    assert Performer(0).unsupported(SHAPE) == "features 0 is less than 1"
