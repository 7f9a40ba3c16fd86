"""Causal attention against torch's modules with the same weights, and what it may not see."""

from __future__ import annotations

import pytest
import torch
from examples import eager_backends
from test_layer_masked import EXACT, SHAPE, ours, torchs
from torch import nn

from vitbench.backends import flex
from vitbench.case import Case
from vitbench.operators.causal import Causal
from vitbench.operators.global_ import Global
from vitbench.program import Program, build
from vitbench.shape import Shape


@pytest.mark.parametrize("backend", eager_backends())
def test_causal_attention_is_torchs_under_a_mask_of_later_tokens(backend: str) -> None:
    program, n = ours(Causal(), SHAPE, backend), SHAPE.tokens
    later = torch.tensor([[key > query for key in range(n)] for query in range(n)])
    torch.testing.assert_close(program.call(), torchs(program, attn_mask=later), **EXACT)


def test_a_causal_block_is_torchs_pre_norm_decoder_layer_without_cross_attention() -> None:
    program = build(Case(Causal(), SHAPE, "naive", "float64", scope="block"))
    ahead = nn.Transformer.generate_square_subsequent_mask(SHAPE.tokens, dtype=torch.float64)
    theirs = nn.TransformerEncoderLayer(
        24, 3, 4 * 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    state = program.module.state_dict()
    for ours_, name in {"attention.qkv.": "self_attn.in_proj_", "attention.proj": "self_attn.out_proj"}.items():
        state = {key.replace(ours_, name): value for key, value in state.items()}
    for ours_, name in {"mlp.0": "linear1", "mlp.2": "linear2"}.items():
        state = {key.replace(ours_, name): value for key, value in state.items()}
    theirs.load_state_dict(state)
    expected = theirs(program.inputs[0], src_mask=ahead, is_causal=True).detach()
    torch.testing.assert_close(program.call(), expected, **EXACT)


@pytest.mark.parametrize("backend", eager_backends())
def test_a_token_changes_itself_and_later_tokens_alone(backend: str) -> None:
    program = ours(Causal(), SHAPE, backend)
    before, x = program.call(), program.inputs[0].clone()
    x[:, 20] += 1
    change = (Program(program.module, (x,), training=False).call() - before).abs().amax((0, 2))
    assert change[:20].max() < 1e-12
    assert change[20:].min() > 1e-6


@pytest.mark.parametrize("shape", [SHAPE, Shape(1, 1, 1, 4, 1), Shape(3, 4, 2, 8, 2)], ids=str)
def test_useful_pairs_are_those_of_a_token_and_what_came_before_it(shape: Shape) -> None:
    pairs = sum(key <= query for query in range(shape.tokens) for key in range(shape.tokens))
    cost = Causal().cost(shape)
    assert cost.useful_score_elements == shape.batch * shape.heads * pairs
    assert cost.score_elements == shape.batch * shape.heads * shape.tokens**2


def test_causality_saves_no_mac_as_computed_densely() -> None:
    assert Causal().cost(SHAPE).macs == Global().cost(SHAPE).macs


def test_blocks_that_inference_made_first_can_be_saved_for_the_backward_pass_of_training() -> None:
    flex._blocks.cache_clear()
    with torch.inference_mode():
        blocks = flex._blocks(SHAPE.tokens, torch.device("cpu"))
    tensors = [part for part in blocks.as_tuple() if isinstance(part, torch.Tensor)]
    assert tensors
    assert not any(tensor.is_inference() for tensor in tensors)
