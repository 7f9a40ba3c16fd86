"""Every operator on every backend, in every dtype, scope and mode, against the float64 reference."""

from __future__ import annotations

import re

import pytest
from examples import cases, example_operators, supported

from vitbench.backend import Backend, backends
from vitbench.case import DEVICES, ITEMSIZE, Case
from vitbench.check import TOLERANCE, error
from vitbench.program import build

DTYPES = tuple(ITEMSIZE)
EAGER = [case for case in cases(dtypes=DTYPES) if supported(case) and not backends[case.backend].compiled]
# Compiling takes seconds a case: float32 for the last example of each operator, other dtypes for the last of all.
LAST = {operator.name: operator for operator in example_operators()}.values()
COMPILED = [
    case
    for case in cases(dtypes=DTYPES, scopes=("layer",))
    if supported(case) and backends[case.backend].compiled and case.operator in LAST
    if case.dtype == "float32" or (case.operator == example_operators()[-1] and case.mode == "inference")
]
REFUSED = [
    case for device in DEVICES for case in cases(dtypes=DTYPES, device=device, scopes=("core",)) if not supported(case)
]


@pytest.mark.parametrize("case", EAGER, ids=lambda case: case.id)
def test_a_backend_agrees_with_float64(case: Case) -> None:
    assert error(case, build(case)) <= TOLERANCE[case.dtype]


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", COMPILED, ids=lambda case: case.id)
def test_a_compiled_backend_agrees_with_float64(case: Case) -> None:
    program = build(case)
    program = program.wrapped(case.backend)
    assert error(case, program) <= TOLERANCE[case.dtype]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_a_backend_does_not_support_has_a_reason_of_one_sentence(case: Case) -> None:
    reason = backends[case.backend].unsupported(case)
    assert reason is not None
    assert re.fullmatch(r"\S[^\n]{10,}[^\s.]", reason)
    assert ". " not in reason


@pytest.mark.parametrize("name", ["naive", "sdpa", "sdpa.fold", "sdpa.math"])
def test_a_backend_that_runs_anywhere_refuses_nothing(name: str) -> None:
    for case in (case for device in DEVICES for case in cases(dtypes=DTYPES, device=device)):
        assert backends[name].unsupported(case) is None


@pytest.mark.parametrize("backend", list(backends), ids=lambda backend: backend.name)
def test_a_backend_says_what_executes_and_belongs_to_a_known_family(backend: Backend) -> None:
    assert backend.name.partition(".")[0] in ("naive", "sdpa", "fused")
    assert len(backend.description) > 10
    assert "\n" not in backend.description
