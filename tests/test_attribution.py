"""What was asked for, what torch chose and what ran are three things, and each is told."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config

from analysis.kernels import kernels
from vitbench import trial
from vitbench.attribution import kernels_of
from vitbench.case import Case
from vitbench.compiler import lacking, watched
from vitbench.measure.kernels import ran
from vitbench.measure.sampling import Samples
from vitbench.operator import parse_operator
from vitbench.record import Record
from vitbench.shape import Shape


def record(backend: str, operator: str = "global", mode: str = "inference") -> Record:
    case = Case(parse_operator(operator), Shape(2, 6, 6, 32, 2), backend, mode=mode)
    return trial.run(case, lambda call: Samples([1.0]))


@pytest.mark.parametrize(
    ("backend", "operator", "mode", "told"),
    [
        ("naive", "global", "inference", ("products", [], ["products"])),
        ("sdpa", "global", "inference", (None, ["flash"], ["flash"])),
        ("sdpa.math", "global", "inference", ("math", ["math"], ["math"])),
        ("sdpa.flash", "global", "training", ("flash", ["flash"], ["flash"])),
        # a bias that requires grad sends torch to its math form
        ("sdpa", "window3-shift1", "training", (None, ["math"], ["math"])),
    ],
)
def test_the_kernel_is_told_as_asked_chosen_and_seen(backend: str, operator: str, mode: str, told: object) -> None:
    found = record(backend, operator, mode)
    assert (found.asked, found.chosen, found.attended) == told
    assert found.compile_seconds is None and found.matched is None, "nothing was compiled"


@pytest.mark.parametrize("name", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_what_is_turned_off_is_not_measured_as_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    found = record("naive.compiled")
    assert (found.state, found.reason) == ("unsupported", f"{name}=1 turns torch.compile off: unset it")


@pytest.mark.slow
@pytest.mark.skipif(lacking("cpu") is not None, reason="no compiler here")
def test_compiling_has_a_time_of_its_own() -> None:
    found = record("naive.compiled")
    assert found.state == "ok", found.reason
    assert found.asked == "compiled" and found.attended == ["compiled"]
    assert found.compile_seconds is not None and found.first_call_seconds is not None
    assert 0 < found.compile_seconds <= found.first_call_seconds
    assert found.matched in (0, None)  # None where an earlier test run left its caches


@pytest.mark.slow
@pytest.mark.skipif(lacking("cpu") is not None, reason="no compiler here")
def test_a_naive_form_that_the_compiler_turns_into_sdpa_is_counted() -> None:
    def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.matmul(q, k.transpose(-2, -1)).div(4.0).softmax(dim=-1), v)

    q, k, v = torch.randn(3, 2, 4, 16, 16).unbind(0)
    matched = []
    for caching in (False, True, True):
        with functorch_config.patch(enable_autograd_cache=caching), inductor_config.patch(fx_graph_cache=caching):
            with watched() as compiled, torch.inference_mode():
                compiled_naive = torch.compile(naive, dynamic=False)
                compiled_naive(q, k, v)
            assert compiled.seconds > 0
            assert kernels_of(ran(lambda: compiled_naive(q, k, v), "cpu").operators) == ["flash"]  # noqa: B023
        matched.append(compiled.matched)
    assert matched[0] == 1
    assert matched[2] is None, "a graph from the cache was matched once upon a time, or not"


@pytest.mark.parametrize(
    ("operators", "kernel"),
    [
        (["aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_softmax"], ["flash"]),
        (["aten::_scaled_dot_product_efficient_attention"], ["efficient"]),
        (["aten::_scaled_dot_product_cudnn_attention"], ["cudnn"]),
        (["aten::_scaled_dot_product_attention_math", "aten::_softmax"], ["math"]),
        (["## Call CompiledFxGraph fq ##", "aten::bmm"], ["compiled"]),
        (["aten::bmm", "aten::_softmax"], ["products"]),
        (["aten::bmm"], []),
    ],
)
def test_a_kernel_is_known_by_the_operators_that_ran(operators: list[str], kernel: list[str]) -> None:
    assert kernels_of(operators) == kernel


def case(**told: object) -> dict[str, object]:
    return {
        "id": "a case",
        "backend": "sdpa.flash",
        "asked": "flash",
        "chosen": ["flash"],
        "attended": ["flash"],
        "matched": float("nan"),
        **told,
    }


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (case(attended=["math"]), "flash was asked for"),
        (case(asked=None, attended=["math"]), "torch said that it would choose flash"),
        (
            case(asked="compiled", chosen=None, attended=["flash"], matched=2.0),
            "replaced products and softmax by SDPA, 2",
        ),
        (case(attended=[]), "no operator of attention was seen"),
    ],
)
def test_the_report_flags_a_kernel_that_was_not_asked_for(told: dict[str, object], why: str) -> None:
    section = kernels(pd.DataFrame([case(), told]))
    assert (
        section.sentence == "The kernels of 2 cases were looked at: 1 ran what was asked for; the 1 others are listed."
    )
    assert section.table is not None and why in section.table["why it is listed"].iloc[0]


def test_the_report_lists_nothing_where_all_is_as_asked() -> None:
    assert (
        kernels(pd.DataFrame([case(), case(asked=None), case(attended=None), case(backend="own", attended=[])])).table
        is None
    )
