"""Every operator on every backend, in every dtype, scope and mode, against the float64 reference."""

from __future__ import annotations

import re

import pytest
from examples import cases, kind_of_attention, supported, telling

from vitbench.backend import Backend, backends, refused
from vitbench.case import DEVICES, ITEMSIZE, Case
from vitbench.check import TOLERANCE, error
from vitbench.program import build

DTYPES = tuple(ITEMSIZE)
RUN = [case for case in cases(dtypes=DTYPES) if supported(case)]
EAGER = [case for case in RUN if telling(case) and not backends[case.backend].compiled]
# Compiling takes seconds a case: FlexAttention for one case of each kind of attention, a compiled module for the last
# examples of the two operators with one plain attention.
COMPILED_LAYERS = [case for case in RUN if backends[case.backend].compiled and case.scope == "layer"]
ATTENTIONS = {
    kind_of_attention(case): case
    for case in COMPILED_LAYERS
    if case.dtype == "float32" and case.mode == "inference" and case.backend == "fused.flex"
}
MODULES = [
    case
    for case in COMPILED_LAYERS
    if str(case.operator) in ("global", "window3-shift1")
    and (case.dtype == "float32" or (case.dtype, case.mode, case.operator.name) == ("bfloat16", "inference", "window"))
]
COMPILED = list(dict.fromkeys([*ATTENTIONS.values(), *MODULES]))
REFUSED = [
    case
    for device in DEVICES
    for case in cases(dtypes=DTYPES, device=device)
    if case.scope == case.operator.scopes[0] and not supported(case)
]
SENTENCES = {refused(case): case for case in REFUSED}  # each once


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


@pytest.mark.parametrize("reason", SENTENCES, ids=lambda reason: SENTENCES[reason].id)
def test_what_a_backend_does_not_support_has_a_reason_of_one_sentence(reason: str) -> None:
    assert re.fullmatch(r"\S[^\n]{10,}[^\s.]", reason)
    assert ". " not in reason


@pytest.mark.parametrize("name", ["naive", "sdpa", "sdpa.fold", "sdpa.math"])
def test_a_backend_that_runs_anywhere_refuses_no_softmax_attention(name: str) -> None:
    for case in (case for device in DEVICES for case in cases(dtypes=("float32",), device=device)):
        if case.backend == name and case.attentions:
            assert refused(case) is None


def test_what_has_no_softmax_attention_runs_as_its_own_program_alone() -> None:
    for case in cases(dtypes=("float32",)):
        if not case.attentions and not (case.mode == "training" and case.dtype in case.operator.rough):
            assert supported(case) == (not backends[case.backend].attends), case.id


@pytest.mark.parametrize("backend", list(backends), ids=lambda backend: backend.name)
def test_a_backend_says_what_executes_and_belongs_to_a_known_family(backend: Backend) -> None:
    assert backend.name.partition(".")[0] in ("naive", "sdpa", "fused", "own")
    assert len(backend.description) > 10
    assert "\n" not in backend.description
