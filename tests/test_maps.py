"""Attention maps: what a module mixed, against torch.nn.MultiheadAttention and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from examples import example_operators, example_shape

from vitbench.case import Case
from vitbench.maps import attention_maps, cls_map, rollout
from vitbench.model import models
from vitbench.operator import Operator, parse_operator
from vitbench.program import Program, build, outputs_of
from vitbench.refusal import Refusal
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 4, 16, 2, prefix=1)


def program(text: str, shape: Shape = SHAPE, backend: str = "sdpa", **given: str) -> Program:
    return build(Case(parse_operator(text), shape, backend, "float64", **given))


def torchs(layer: torch.nn.Module) -> torch.nn.MultiheadAttention:
    theirs = torch.nn.MultiheadAttention(16, 2, batch_first=True, dtype=torch.float64).eval()
    theirs.load_state_dict(
        {
            "in_proj_weight": layer.qkv.weight,
            "in_proj_bias": layer.qkv.bias,
            "out_proj.weight": layer.proj.weight,
            "out_proj.bias": layer.proj.bias,
        }
    )
    return theirs


@pytest.mark.parametrize("backend", ["naive", "sdpa", "sdpa.flash"])
def test_the_maps_of_a_layer_are_those_of_torchs_multihead_attention(backend: str) -> None:
    layer = program("global", backend=backend)
    x = layer.inputs[0]
    with torch.no_grad():
        result, (weights,) = attention_maps(layer.module, x)
        out, expected = torchs(layer.module)(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(weights[:, 0], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(result, out, rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.call(), out, rtol=0, atol=1e-12)  # on its own backend again


@pytest.mark.parametrize("text", ["maps", "maps-way=shared"])
def test_a_layer_that_gives_its_maps_gives_those_of_torchs_multihead_attention(text: str) -> None:
    layer = program(text, backend="own" if "shared" in text else "sdpa")
    x = layer.inputs[0]
    with torch.no_grad():
        out, expected = torchs(layer.module)(x, x, x, average_attn_weights=False)
    result, weights = layer.call()
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(result, out, rtol=0, atol=1e-12)


def test_recomputing_the_weights_costs_the_scores_again_and_sharing_them_nothing() -> None:
    plain, recomputed, shared = (parse_operator(text).cost(SHAPE) for text in ("global", "maps", "maps-way=shared"))
    assert recomputed.total_macs - plain.total_macs == 2 * 13**2 * 16
    assert shared.macs == plain.macs


def test_maps_of_a_model_come_layer_by_layer_and_leave_its_logits() -> None:
    variant = models["vit_ti_16"]
    vit = build(Case(variant.model, Shape(2, 3, 3, 192, 3, 1), "sdpa", "float64", scope="model"))
    with torch.no_grad():
        logits, weights = attention_maps(vit.module, *vit.inputs)
    assert [tuple(layer.shape) for layer in weights] == [(2, 1, 3, 10, 10)] * 12
    torch.testing.assert_close(logits, vit.call(), rtol=0, atol=1e-10)
    for layer in weights:
        torch.testing.assert_close(layer.sum(-1), torch.ones(2, 1, 3, 10, dtype=torch.float64))


def test_masked_pairs_have_no_weight() -> None:
    layer = program("window3-shift1", Shape(2, 5, 4, 16, 2))
    with torch.no_grad():
        _, (weights,) = attention_maps(layer.module, *layer.inputs)
    mask = layer.module.masks()[0].expand_as(weights)
    assert (weights[~mask] == 0).all() and (weights[mask] > 0).all()


def test_the_cls_row_lies_over_the_grid() -> None:
    weights = torch.rand(2, 1, 2, 13, 13)
    found = cls_map(weights, SHAPE)
    assert found.shape == (2, 2, 3, 4)
    assert found[1, 0, 2, 3] == weights[1, 0, 0, 0, 12]
    assert found[0, 1, 0, 0] == weights[0, 0, 1, 0, 1]


def test_rollout_of_the_worked_example_is_what_hands_compute() -> None:
    """softmax of [ln 2, 0, 0] is [1/2, 1/4, 1/4], in every row of both heads and both layers."""
    row = torch.tensor([math.log(2), 0, 0], dtype=torch.float64).softmax(0)
    layer = row.expand(1, 1, 2, 3, 3)
    half = (row.expand(3, 3) + torch.eye(3, dtype=torch.float64)) / 2
    shape = Shape(1, 1, 3, 4, 2)
    torch.testing.assert_close(rollout([layer], shape)[0], half)
    torch.testing.assert_close(rollout([layer, layer], shape)[0], half @ half)
    assert rollout([layer, layer], shape)[0, 1].tolist() == pytest.approx([3 / 8, 7 / 16, 3 / 16])


def test_rollout_multiplies_later_layers_from_the_left_and_takes_the_mean_of_heads() -> None:
    generator = torch.Generator().manual_seed(0)
    layers = [torch.randn(2, 1, 3, 5, 5, generator=generator).double().softmax(-1) for _ in range(3)]
    expected = torch.eye(5, dtype=torch.float64).expand(2, 5, 5)
    for weights in layers:
        one = 0.5 * weights.mean(2)[:, 0] + 0.5 * torch.eye(5, dtype=torch.float64)
        expected = torch.einsum("bij,bjk->bik", one, expected)
    torch.testing.assert_close(rollout(layers, Shape(2, 1, 5, 6, 3)), expected)


def test_what_has_no_map_is_refused() -> None:
    with pytest.raises(Refusal, match="no softmax attention"):
        attention_maps(torch.nn.Linear(2, 2), torch.rand(1, 2))
    with pytest.raises(Refusal, match="no prefix token"):
        cls_map(torch.rand(1, 1, 2, 12, 12), Shape(1, 3, 4, 16, 2))
    with pytest.raises(Refusal, match=r"expected \(B, 1, H, 13, 13\)"):
        cls_map(torch.rand(1, 4, 2, 9, 9), SHAPE)
    with pytest.raises(Refusal, match=r"expected \(B, 1, H, 13, 13\)"):
        rollout([torch.rand(1, 4, 2, 9, 9)], SHAPE)
    with pytest.raises(Refusal, match="at least one layer"):
        rollout([], SHAPE)
    with pytest.raises(Refusal, match="differ in batch"):
        rollout([torch.rand(1, 1, 2, 13, 13), torch.rand(2, 1, 2, 13, 13)], SHAPE)


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_every_softmax_attention_of_every_operator_leaves_its_weights(operator: Operator) -> None:
    shape, scope = example_shape(operator), operator.scopes[-1]
    backend = "sdpa" if operator.attentions(shape) else "own"
    built = build(Case(operator, shape, backend, "float64", scope=scope))
    if not operator.attentions(shape):
        with pytest.raises(Refusal, match="no softmax attention"):
            attention_maps(built.module, *built.inputs)
        return
    with torch.no_grad():
        result, weights = attention_maps(built.module, *built.inputs)
    sizes = [(one.batch, one.groups, one.heads, one.queries, one.keys) for one in operator.attentions(shape)]
    assert [tuple(each.shape) for each in weights] == sizes
    for found, own in zip(outputs_of(result), outputs_of(built.call()), strict=True):
        torch.testing.assert_close(found, own, rtol=0, atol=1e-10)


def test_a_module_that_fails_gets_its_backend_back() -> None:
    layer = program("global")
    before = layer.module.attend
    with pytest.raises(RuntimeError):
        attention_maps(layer.module, torch.rand(1, 13, 7, dtype=torch.float64))
    assert layer.module.attend == before
