"""Cross-attention against torch's modules with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.operators.cross import Cross
from vitbench.operators.global_ import Global
from vitbench.program import Program, build
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 5, 24, 3, prefix=1)
EXACT = {"rtol": 0.0, "atol": 1e-10}


def ours(keys: int, scope: str = "layer") -> Program:
    return build(Case(Cross(keys), SHAPE, "naive", "float64", scope=scope))


def torchs(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our layer's state under the names of torch's attention."""
    stacked = {f"in_proj_{kind}": torch.cat([state[f"q.{kind}"], state[f"kv.{kind}"]]) for kind in ("weight", "bias")}
    return stacked | {f"out_proj.{kind}": state[f"proj.{kind}"] for kind in ("weight", "bias")}


@pytest.mark.parametrize("keys", [1, 7, 16, 40])  # N is 16
def test_cross_attention_is_torchs_multihead_attention_of_a_memory(keys: int) -> None:
    program = ours(keys)
    theirs = nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(torchs(program.module.state_dict()))
    x, memory = program.inputs
    assert memory.shape == (2, keys, 24)
    torch.testing.assert_close(program.call(), theirs(x, memory, memory, need_weights=False)[0].detach(), **EXACT)


def test_a_block_is_torchs_pre_norm_decoder_layer_less_its_self_attention() -> None:
    program = ours(7, scope="block")
    theirs = nn.TransformerDecoderLayer(
        24, 3, 4 * 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    state = program.module.state_dict()
    layer = {name.removeprefix("attention."): value for name, value in state.items() if name.startswith("attention.")}
    theirs.multihead_attn.load_state_dict(torchs(layer))
    parts = {"norm1": "norm2", "norm2": "norm3", "mlp.0": "linear1", "mlp.2": "linear2"}  # ours to theirs
    for own, part in parts.items():
        theirs.get_submodule(part).load_state_dict(program.module.get_submodule(own).state_dict())
    with torch.no_grad():  # self-attention then adds nothing
        theirs.self_attn.out_proj.weight.zero_()
        theirs.self_attn.out_proj.bias.zero_()
    torch.testing.assert_close(program.call(), theirs(*program.inputs).detach(), **EXACT)


def test_a_memory_of_as_many_tokens_costs_what_self_attention_costs() -> None:
    cross, own = Cross(SHAPE.tokens).cost(SHAPE), Global().cost(SHAPE)
    assert cross.macs == own.macs
    assert (cross.parameters, cross.score_elements, cross.elementwise) == (
        own.parameters,
        own.score_elements,
        own.elementwise,
    )


def test_a_memory_of_no_tokens_is_refused() -> None:
    assert Cross(0).unsupported(SHAPE) == "keys 0 is less than 1"
