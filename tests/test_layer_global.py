"""Global attention against other people's modules with the same weights, and its symmetry."""

from __future__ import annotations

import pytest
import torch
from examples import eager_backends
from torch import nn

from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.program import Program, build
from vitbench.shape import Shape

SHAPE = Shape(2, 5, 7, 24, 3, prefix=1)
EXACT = {"rtol": 0.0, "atol": 1e-10}


def ours(backend: str = "naive", scope: str = "layer") -> Program:
    return build(Case(Global(), SHAPE, backend, "float64", scope=scope))


def test_global_attention_is_torchs_multihead_attention() -> None:
    program = ours()
    theirs = nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64)
    state = program.module.state_dict()
    theirs.load_state_dict(
        {
            "in_proj_weight": state["qkv.weight"],
            "in_proj_bias": state["qkv.bias"],
            "out_proj.weight": state["proj.weight"],
            "out_proj.bias": state["proj.bias"],
        }
    )
    x = program.inputs[0]
    torch.testing.assert_close(program.call(), theirs(x, x, x, need_weights=False)[0].detach(), **EXACT)


def test_a_block_is_torchs_pre_norm_encoder_layer() -> None:
    program = ours(scope="block")
    theirs = nn.TransformerEncoderLayer(
        24, 3, 4 * 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    names = {
        "attention.qkv.": "self_attn.in_proj_",
        "attention.proj.": "self_attn.out_proj.",
        "mlp.0.": "linear1.",
        "mlp.2.": "linear2.",
    }
    state = {}
    for name, value in program.module.state_dict().items():
        prefix = next((prefix for prefix in names if name.startswith(prefix)), None)
        state[name.replace(prefix, names[prefix]) if prefix else name] = value
    theirs.load_state_dict(state)
    torch.testing.assert_close(program.call(), theirs(program.inputs[0]).detach(), **EXACT)


@pytest.mark.parametrize("scope", ["layer", "block"])
def test_global_attention_is_timms_vit(scope: str) -> None:
    pytest.importorskip("timm")
    from timm.models.vision_transformer import Attention, Block

    program = ours(scope=scope)
    if scope == "layer":
        theirs = Attention(24, num_heads=3, qkv_bias=True).double()
        theirs.load_state_dict(program.module.state_dict())
    else:
        theirs = Block(24, num_heads=3, qkv_bias=True).double()
        theirs.norm1.eps = theirs.norm2.eps = program.module.norm1.eps
        renamed = {"attention": "attn", "mlp.0": "mlp.fc1", "mlp.2": "mlp.fc2"}
        state = program.module.state_dict()
        for old, new in renamed.items():
            state = {name.replace(old, new): value for name, value in state.items()}
        theirs.load_state_dict(state)
    torch.testing.assert_close(program.call(), theirs(program.inputs[0]).detach(), **EXACT)


@pytest.mark.parametrize("scope", ["layer", "block"])
@pytest.mark.parametrize("backend", eager_backends())
def test_permuted_tokens_give_permuted_outputs(backend: str, scope: str) -> None:
    program = ours(backend, scope)
    order = torch.randperm(SHAPE.tokens, generator=torch.Generator().manual_seed(3))
    permuted = Program(program.module, (program.inputs[0][:, order],), training=False)
    torch.testing.assert_close(permuted.call(), program.call()[:, order], **EXACT)
    assert not torch.allclose(permuted.call(), program.call())
