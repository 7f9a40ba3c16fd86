"""Each counter on each case: exact, or every MAC of the difference has a name."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from examples import cases, kind_of_attention, supported, telling

from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.counting import Finding, findings
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.shape import Shape

ALL = [case for case in cases(dtypes=("float32",)) if supported(case)]
FLEX = {kind_of_attention(case): case for case in ALL if case.backend == "fused.flex" and case.scope == "layer"}
EAGER = [case for case in ALL if telling(case) and not backends[case.backend].compiled]
SUPPORTED = [*EAGER, *FLEX.values()]
SHAPE = Shape(2, 5, 4, 32, 2)
needs_fvcore = pytest.mark.skipif(importlib.util.find_spec("fvcore") is None, reason="fvcore is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning"),  # fvcore traces
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning"),
]


def found(case: Case) -> dict[str, Finding]:
    return {finding.key: finding for finding in findings(case)}


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", SUPPORTED, ids=lambda case: case.id)
def test_every_count_is_the_closed_form_or_every_difference_is_explained(case: Case) -> None:
    each = found(case)
    for finding in each.values():
        assert finding.closed == case.cost().total_macs
        assert finding.unexplained == 0, finding
        assert finding.macs is not None or finding.reason, finding
    on_meta(case, each["dispatch.meta"])
    if case.mode == "inference":
        assert each["dispatch"].macs == case.cost().total_macs
    assert each["dispatch"].uncounted == ()


def on_meta(case: Case, finding: Finding) -> None:
    """The closed form, in training too."""
    if finding.macs is None:  # a higher-order operator of torch's may refuse meta tensors, and says so
        assert backends[case.backend].compiled
        assert finding.reason is not None and "meta" in finding.reason
        return
    assert finding.macs == case.cost().total_macs
    assert finding.uncounted == ()
    assert dict(finding.differences) == {}


@pytest.mark.parametrize("scope", ["core", "layer"])
def test_a_fused_backward_is_counted_computing_the_scores_again(scope: str) -> None:
    case = Case(Global(), SHAPE, "sdpa.flash", scope=scope, mode="training")
    finding = found(case)["dispatch"]
    again = case.operator.cost(SHAPE, "core").macs["scores"]
    assert finding.macs == case.cost().total_macs + again
    assert list(finding.differences.values()) == [again]
    assert "computes the scores again" in next(iter(finding.differences))


def test_the_naive_backward_computes_nothing_again() -> None:
    case = Case(Window(3, 1), SHAPE, "naive", scope="block", mode="training")
    assert found(case)["dispatch"].macs == case.cost().total_macs


@needs_fvcore
@pytest.mark.parametrize("operator", [Global(), Window(3, 1)], ids=str)
def test_fvcore_misses_fused_attention_and_names_it(operator: Global | Window) -> None:
    case = Case(operator, SHAPE, "sdpa")
    finding, macs = found(case)["fvcore"], case.cost().macs
    assert finding.uncounted == ("aten::scaled_dot_product_attention",)
    assert finding.macs == macs["qkv"] + macs["proj"]
    assert list(finding.differences.values()) == [-macs["scores"] - macs["mix"]]


@needs_fvcore
def test_fvcore_counts_5_for_each_element_of_a_layernorm() -> None:
    case = Case(Global(), SHAPE, "naive", scope="block")
    finding = found(case)["fvcore"]
    assert list(finding.differences.values()) == [5 * 2 * (2 * 20 * 32)]  # two norms of 2 images x 20 tokens x 32
    assert finding.macs == case.cost().total_macs + 12_800


@needs_fvcore
def test_fvcore_sees_the_forward_pass_alone() -> None:
    case = Case(Global(), SHAPE, "naive", mode="training")
    finding = found(case)["fvcore"]
    assert finding.macs == case.cost().total_macs // 3
    assert list(finding.differences) == ["fvcore traces the forward pass alone"]


def test_unexplained_is_what_no_named_difference_accounts_for() -> None:
    finding = Finding("counter", closed=100, macs=130, uncounted=(), differences={"known": 20}, reason=None)
    assert finding.unexplained == 10


def test_what_cannot_run_here_is_counted_on_meta_and_not_run() -> None:
    case = Case(Global(), SHAPE, "sdpa.efficient")
    finding = found(case)["dispatch"]
    assert finding.macs is None
    assert finding.reason is not None and refused(case) in finding.reason


def test_a_backend_is_counted_without_compiling() -> None:
    torch._dynamo.utils.counters.clear()
    list(findings(Case(Global(), SHAPE, "fused.flex")))
    assert not torch._dynamo.utils.counters["inductor"]
