"""What only a GPU can tell. Runs with `pytest -m cuda`, in under 90 seconds."""

from __future__ import annotations

import re

import pytest
import torch
from examples import cases, kind_of_attention, supported

from vitbench.attribution import choices, kernels_of
from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.check import TOLERANCE, error
from vitbench.measure import kernels, memory
from vitbench.measure.canary import canary
from vitbench.measure.clock import Instant, preparation, timer
from vitbench.operator import parse_operator
from vitbench.peak import peak_bytes
from vitbench.program import Program, build
from vitbench.shape import Shape

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("default")]  # torch's own differ between versions
ON_GPU = cases(dtypes=("float32", "bfloat16", "float16"), device="cuda", scopes=("layer",))
FLEX = ("fused.flex", "float32", "inference")
# Every kind of attention on every backend, and in float32 every operator.
KINDS = {(case.backend, case.dtype, case.mode, kind_of_attention(case)): case for case in ON_GPU}
PROGRAMS = [case for case in ON_GPU if case.dtype == "float32" and case.backend in ("naive", "own")]
EAGER = [case for case in dict.fromkeys([*KINDS.values(), *PROGRAMS]) if not backends[case.backend].compiled]
# Compiling takes seconds a case: two dtypes, and training for the shifted window alone; FlexAttention for each kind.
COMPILED = [
    case
    for case in ON_GPU
    if backends[case.backend].compiled and case.dtype != "float16"
    if str(case.operator) in ("global", "window3-shift1")
    if case.mode == "inference" or (str(case.operator), case.dtype) == ("window3-shift1", "float32")
]
COMPILED += [case for case in KINDS.values() if (case.backend, case.dtype, case.mode) == FLEX and case not in COMPILED]
LARGE = Case(parse_operator("global"), Shape(8, 32, 32, 768, 12, prefix=1), "naive", "float16", "cuda")


def program(case: Case) -> Program:
    built = build(case)
    return built.wrapped(case.backend)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", [*EAGER, *COMPILED], ids=lambda case: case.id)
def test_a_backend_agrees_with_float64_on_the_gpu_or_says_why_not(case: Case) -> None:
    if supported(case):
        assert error(case, program(case)) <= TOLERANCE[case.dtype]
        return
    reason = refused(case)
    assert reason is not None
    assert re.fullmatch(r"\S[^\n]{10,}[^\s.]", reason)


@pytest.mark.parametrize(("backend", "least"), [("naive", 4), ("sdpa", 2), ("sdpa.flash", 2), ("sdpa.efficient", 2)])
def test_a_kernel_of_each_family_runs_some_case(backend: str, least: int) -> None:
    assert sum(supported(case) for case in EAGER if case.backend == backend) >= least


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_device_time_is_positive_and_grows_with_the_work(cache: str) -> None:
    def seconds(call: object) -> float:
        prepare, now = preparation("cuda", call, cache), timer("cuda")
        times = []
        for _ in range(7):
            prepare()
            start = now()
            call()
            times.append(now() - start)
        assert all(time > 0 for time in times)
        assert len(now.launches) == 7 and all(launch > 0 for launch in now.launches)
        assert now.exposed <= 1, "the stream ran dry while a call was launched"
        return sorted(times)[3]

    a = torch.randn(2048, 2048, device="cuda")
    assert isinstance(timer("cuda")(), Instant)
    assert 4 < seconds(lambda: [a @ a for _ in range(16)]) / seconds(lambda: [a @ a for _ in range(2)]) < 16


@pytest.mark.parametrize("scope", ["core", "layer", "block"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_peak_memory_of_naive_attention_is_the_closed_form_within_5_percent(dtype: str, scope: str) -> None:
    case = Case(LARGE.operator, LARGE.shape, "naive", dtype, "cuda", scope)
    built = build(case)
    built.call()  # cuBLAS takes its workspace once
    assert memory.peak_bytes(built.call, "cuda") == pytest.approx(peak_bytes(case), rel=0.05)


@pytest.mark.parametrize("backend", ["naive", "sdpa"])
def test_the_kernels_that_ran_are_named(backend: str) -> None:
    names, operators = kernels.ran(build(Case(LARGE.operator, LARGE.shape, backend, "float16", "cuda")).call, "cuda")
    assert names
    assert all(isinstance(name, str) and name for name in names)
    assert not any(name.startswith("aten::") for name in names), "an operator of the host is no kernel"
    assert kernels_of(operators)


@pytest.mark.parametrize(
    ("backend", "kernel"), [("sdpa.math", "math"), ("sdpa.flash", "flash"), ("sdpa.efficient", "efficient")]
)
def test_the_kernel_that_was_asked_for_is_chosen_and_runs(backend: str, kernel: str) -> None:
    call = build(Case(LARGE.operator, LARGE.shape, backend, "float16", "cuda")).call
    assert backends[backend].kernel == kernel
    assert choices(call) == [kernel]
    assert kernels_of(kernels.ran(call, "cuda").operators) == [kernel]


def test_the_canary_of_a_gpu_is_a_product_that_takes_time() -> None:
    assert 1e11 < 4096**3 / canary("cuda") < 1e15


def test_free_memory_is_read_from_the_device() -> None:
    assert 0 < memory.free_bytes("cuda") <= torch.cuda.get_device_properties().total_memory
