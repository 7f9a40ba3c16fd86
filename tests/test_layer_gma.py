"""Global motion aggregation against the equations of Jiang et al. 2021 and torch's multi-head attention."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch
from torch import nn

from vitbench.case import Case
from vitbench.operators.gma import Gma
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}


def ours(heads: int) -> Program:
    return build(Case(Gma(), Shape(2, 5, 4, 12, heads), "naive", "float64"))


def test_one_head_is_the_papers_equations() -> None:
    program = ours(1)
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    query, key = state["qk.weight"][:12], state["qk.weight"][12:]
    context, motion = (x.numpy() for x in program.inputs)
    expected = np.empty_like(motion)
    for b in range(2):
        for i in range(20):
            alike = np.exp([query @ context[b, i] @ (key @ context[b, j]) / np.sqrt(12) for j in range(20)])
            gathered = sum(alike[j] * (state["v.weight"] @ motion[b, j]) for j in range(20)) / alike.sum()
            expected[b, i] = motion[b, i] + state["alpha"][0] * gathered
    torch.testing.assert_close(program.call(), torch.from_numpy(expected), **EXACT)


@pytest.mark.parametrize("heads", [1, 3])
def test_what_is_added_is_torchs_attention_of_context_over_motion(heads: int) -> None:
    program = ours(heads)
    context, motion = program.inputs
    state = program.module.state_dict()
    theirs = nn.MultiheadAttention(12, heads, bias=False, batch_first=True, dtype=torch.float64)
    projections = torch.cat([state["qk.weight"], state["v.weight"]])
    theirs.load_state_dict({"in_proj_weight": projections, "out_proj.weight": torch.eye(12, dtype=torch.float64)})
    gathered = theirs(context, context, motion, need_weights=False)[0].detach()
    torch.testing.assert_close(program.call(), motion + state["alpha"] * gathered, **EXACT)


def test_where_alpha_is_0_as_at_the_start_of_training_motion_goes_through() -> None:
    program = ours(1)
    assert not torch.allclose(program.call(), program.inputs[1])
    with torch.no_grad():
        program.module.alpha.zero_()
    torch.testing.assert_close(program.call(), program.inputs[1], **EXACT)


def test_macs_are_3nd2_and_2n2d() -> None:
    h, w, d, heads = sympy.symbols("h w d heads", integer=True, positive=True)
    n = h * w
    found = Gma().cost(Shape(1, h, w, d, heads)).total_macs
    assert sympy.simplify(found - 3 * n * d**2 - 2 * n**2 * d) == 0


def test_at_the_papers_128_features_the_three_matrices_and_alpha_are_all_there_is() -> None:
    assert Gma().cost(Shape(1, 46, 62, 128, 1)).parameters == 3 * 128 * 128 + 1
