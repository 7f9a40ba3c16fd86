"""Linformer's attention against its paper's equation, torch's attention and the figures of others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from vitbench.case import Case
from vitbench.operators.linformer import Linformer
from vitbench.program import Program, build
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 5, 24, 3, prefix=1)  # N = 16
EXACT = {"rtol": 0.0, "atol": 1e-10}


def ours(keys: int) -> Program:
    return build(Case(Linformer(keys), SHAPE, "naive", "float64"))


def equation_7(program: Program) -> np.ndarray:
    """softmax(Q W_i^Q (E K W_i^K)^T / sqrt(d)) F V W_i^V for every head i, then the output projection."""
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    dim, d = SHAPE.dim, SHAPE.head_dim
    images = []
    for x in program.inputs[0].numpy():
        heads = []
        for first in range(0, dim, d):
            q, k, v = (
                x @ state["qkv.weight"][part + first : part + first + d].T
                + state["qkv.bias"][part + first : part + first + d]
                for part in (0, dim, 2 * dim)
            )
            weights = np.exp(q @ (state["E"] @ k).T / np.sqrt(d))
            heads.append(weights / weights.sum(-1, keepdims=True) @ (state["F"] @ v))
        images.append(np.concatenate(heads, -1) @ state["proj.weight"].T + state["proj.bias"])
    return np.stack(images)


@pytest.mark.parametrize("keys", [1, 5, 16, 20])
def test_the_layer_is_equation_7_with_e_and_f_shared_by_the_heads(keys: int) -> None:
    program = ours(keys)
    torch.testing.assert_close(program.call(), torch.from_numpy(equation_7(program)), **EXACT)


def test_with_the_identity_for_e_and_f_it_is_torchs_multihead_attention() -> None:
    program = ours(SHAPE.tokens)
    for table in (program.module.E, program.module.F):
        nn.init.eye_(table)
    theirs = nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64)
    renamed = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias"}
    state = {name: value for name, value in program.module.state_dict().items() if name not in ("E", "F")}
    theirs.load_state_dict({renamed.get(name, name.replace("proj", "out_proj")): v for name, v in state.items()})
    x = program.inputs[0]
    torch.testing.assert_close(program.call(), theirs(x, x, x, need_weights=False)[0].detach(), **EXACT)


def test_macs_and_parameters_are_those_of_hubhop() -> None:
    """HubHop/vit-attention-benchmark: Linformer, k = 256, 14 x 14 tokens, D = 768, 12 heads: 616.56 M and 2.46 M."""
    cost = Linformer(256).cost(Shape(1, 14, 14, 768, 12))
    assert round(cost.total_macs / 1e6, 2) == 616.56
    assert round(cost.parameters / 1e6, 2) == 2.46


def test_no_key_at_all_is_refused() -> None:
    assert Linformer(0).unsupported(SHAPE) == "keys 0 is less than 1"
