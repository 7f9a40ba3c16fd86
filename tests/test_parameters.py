"""Paper and program are written apart; here they are held against each other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from examples import example_operators, example_shape

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.operator import Operator
from vitbench.operators.global_ import Global
from vitbench.program import build, outputs_of
from vitbench.shape import Shape


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_parameters_on_paper_are_those_of_the_module(operator: Operator) -> None:
    for scope in set(operator.scopes) - {"core"}:
        case = Case(operator, example_shape(operator), "naive", scope=scope)
        module = build(case, device="meta").module
        assert sum(parameter.numel() for parameter in module.parameters()) == case.cost().parameters


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_what_a_layer_hands_over_takes_and_gives_is_on_paper(operator: Operator) -> None:
    shape, seen = example_shape(operator), []

    def attend(q: Any, k: Any, v: Any, *, bias: Any = None, mask: Any = None, **given: Any) -> torch.Tensor:
        sizes = [None if given is None else tuple(given.shape) for given in (q, k, v, bias, mask)]
        seen.append((*sizes, given.get("causal", False), given.get("scale")))
        return q.new_zeros(*q.shape[:-1], v.shape[-1])

    program = build(Case(operator, shape, "naive", scope=operator.scopes[-1]), attend=attend)
    result = program.call()
    on_paper = [(a.q, a.k, a.v, a.bias, a.mask, a.causal, a.scale) for a in operator.attentions(shape)]
    assert seen == on_paper
    assert [tuple(x.shape) for x in program.inputs] == list(operator.inputs(shape))
    assert [tuple(x.shape) for x in outputs_of(result)] == list(operator.outputs(shape))


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_no_pair_is_useful_that_is_not_computed_and_masks_leave_those_that_are(operator: Operator) -> None:
    shape = example_shape(operator)
    layer = build(Case(operator, shape, "naive", scope=operator.scopes[-1]), attend=backends["naive"].attend).module
    layer = getattr(layer, "attention", layer)
    for attention, mask in zip(operator.attentions(shape), layer.masks(), strict=True):
        useful = attention.pairs if attention.useful is None else attention.useful
        assert 0 < useful <= attention.pairs
        if mask is not None:  # a pair with padding may be computed and allowed, and is of no use
            size = (attention.batch, attention.groups, attention.heads, attention.queries, attention.keys)
            assert useful <= int(mask.expand(size).sum()) // attention.heads


def test_mlp_and_norms_of_a_vit_b_block_have_their_published_sizes() -> None:
    module = build(Case(Global(), Shape(1, 1, 1, 768, 12), "naive", scope="block")).module
    sizes = {name: sum(p.numel() for p in part.parameters()) for name, part in module.named_children()}
    assert sizes["attention"] == 2_362_368
    assert sizes["mlp"] == 4_722_432
    assert sizes["norm1"] + sizes["norm2"] == 3_072


def test_weights_of_attention_with_512_features_number_1048576() -> None:
    module = build(Case(Global(), Shape(1, 1, 1, 512, 8), "naive")).module
    assert sum(parameter.numel() for parameter in module.parameters() if parameter.ndim == 2) == 1_048_576
