"""Paper and program are written apart; here they are held against each other."""

from __future__ import annotations

import pytest
import torch
from examples import example_operators, example_shape

from vitbench.case import Case
from vitbench.operator import Operator
from vitbench.operators.global_ import Global
from vitbench.program import build
from vitbench.shape import Shape


@pytest.mark.parametrize("scope", ["layer", "block"])
@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_parameters_on_paper_are_those_of_the_module(operator: Operator, scope: str) -> None:
    case = Case(operator, example_shape(operator), "naive", scope=scope)
    module = build(case).module
    assert sum(parameter.numel() for parameter in module.parameters()) == case.cost().parameters


@pytest.mark.parametrize("operator", example_operators(), ids=str)
def test_groups_on_paper_are_those_that_attend(operator: Operator) -> None:
    shape, seen = example_shape(operator), []

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **_: object) -> torch.Tensor:
        seen.append(tuple(q.shape))
        return v

    build(Case(operator, shape, "naive"), attend=attend).call()
    groups = operator.groups(shape)
    assert seen == [(shape.batch, groups.count, shape.heads, groups.tokens, shape.head_dim)]


def test_mlp_and_norms_of_a_vit_b_block_have_their_published_sizes() -> None:
    module = build(Case(Global(), Shape(1, 1, 1, 768, 12), "naive", scope="block")).module
    sizes = {name: sum(p.numel() for p in part.parameters()) for name, part in module.named_children()}
    assert sizes["attention"] == 2_362_368
    assert sizes["mlp"] == 4_722_432
    assert sizes["norm1"] + sizes["norm2"] == 3_072


def test_weights_of_attention_with_512_features_number_1048576() -> None:
    module = build(Case(Global(), Shape(1, 1, 1, 512, 8), "naive")).module
    assert sum(parameter.numel() for parameter in module.parameters() if parameter.ndim == 2) == 1_048_576
