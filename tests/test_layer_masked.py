"""Attention under a random mask against torch's module with the same weights, and the mask itself."""

from __future__ import annotations

import pytest
import torch
from examples import eager_backends
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.operator import Operator
from vitbench.operators.global_ import Global
from vitbench.operators.masked import Masked
from vitbench.program import Program, build
from vitbench.shape import Shape

SHAPE = Shape(2, 5, 7, 24, 3, prefix=1)
EXACT = {"rtol": 0.0, "atol": 1e-10}


def ours(operator: Operator, shape: Shape, backend: str = "naive") -> Program:
    return build(Case(operator, shape, backend, "float64"))


def torchs(program: Program, **masks: Tensor) -> Tensor:
    """nn.MultiheadAttention with the program's weights, on its input. masks: theirs, True = must not attend."""
    shape, state = program.module.shape, program.module.state_dict()
    theirs = nn.MultiheadAttention(shape.dim, shape.heads, batch_first=True, dtype=torch.float64)
    names = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias"}
    names |= {f"proj.{part}": f"out_proj.{part}" for part in ("weight", "bias")}
    theirs.load_state_dict({names[name]: value for name, value in state.items()})
    x = program.inputs[0]
    return theirs(x, x, x, need_weights=False, **masks)[0].detach()


@pytest.mark.parametrize("backend", eager_backends())
def test_masked_attention_is_torchs_under_the_inverse_of_the_mask(backend: str) -> None:
    program = ours(Masked(25), SHAPE, backend)
    (mask,) = program.module.masks()
    torch.testing.assert_close(program.call(), torchs(program, attn_mask=~mask[0, 0, 0]), **EXACT)
    assert (program.call() - torchs(program)).abs().max() > 1e-2


@pytest.mark.parametrize(("keep", "keys"), [(6, 2), (25, 9), (50, 18), (99, 35), (100, 36)])  # of 36 tokens
def test_each_query_sees_itself_and_as_many_others_as_are_kept(keep: int, keys: int) -> None:
    (mask,) = ours(Masked(keep), SHAPE).module.masks()
    assert mask.shape == (1, 1, 1, 36, 36)
    assert mask.dtype == torch.bool
    assert mask.sum(-1).unique().tolist() == [keys]
    assert mask[0, 0, 0].diagonal().all()
    cost = Masked(keep).cost(SHAPE)
    assert cost.useful_score_elements == 2 * 3 * int(mask.sum())
    assert cost.score_elements == 2 * 3 * 36**2


def test_the_others_are_drawn_from_all_over_the_image_and_for_each_query_anew() -> None:
    mask = ours(Masked(25), Shape(1, 10, 10, 4, 1)).module.masks()[0][0, 0, 0]
    seen = mask.sum(0)  # of 100 queries; 25 in the mean, with a deviation of 4.3
    assert 5 < int(seen.min()) < int(seen.max()) < 45
    assert len(mask.unique(dim=0)) == 100
    assert not torch.equal(mask, mask.T)


def test_the_mask_is_the_same_in_every_program_and_leaves_the_weights_as_they_are_drawn() -> None:
    programs = [build(Case(Masked(25), SHAPE, name, scope="block"), seed=n) for n, name in enumerate(["naive", "sdpa"])]
    one, other = (program.module.attention.masks()[0] for program in programs)
    assert torch.equal(one, other)
    plain = build(Case(Global(), SHAPE, "naive", scope="block")).module.state_dict()
    assert all(torch.equal(value, plain[name]) for name, value in programs[0].module.state_dict().items())


def test_a_mask_that_keeps_all_keys_is_global_attention() -> None:
    torch.testing.assert_close(ours(Masked(100), SHAPE).call(), ours(Global(), SHAPE).call(), **EXACT)
    assert Masked(100).cost(SHAPE) == Global().cost(SHAPE)


def test_a_mask_saves_no_mac() -> None:
    assert Masked(25).cost(SHAPE).macs == Global().cost(SHAPE).macs


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        (0, "keep 0 is not within 1 and 100 per cent"),
        (101, "keep 101 is not within 1 and 100 per cent"),
        (5, "keep 5 per cent of 36 tokens is less than 2 keys, a query's own and another"),
    ],
)
def test_a_share_that_leaves_nothing_to_mix_is_refused(keep: int, reason: str) -> None:
    assert Masked(keep).unsupported(SHAPE) == reason
