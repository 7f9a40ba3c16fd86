"""From a case to its record: refuse, build, check, time, probe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from vitbench import compiler
from vitbench.attribution import choices, kernels_of
from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.check import TOLERANCE, Wrong, error
from vitbench.counting import findings
from vitbench.failure import Ended, torch_errors, wanted_bytes
from vitbench.fit import too_large
from vitbench.measure import clock, energy, kernels, memory, telemetry
from vitbench.measure.canary import disturbed
from vitbench.measure.environment import load
from vitbench.measure.sampling import Samples
from vitbench.peak import peak_bytes
from vitbench.program import Program, build
from vitbench.record import Record

Time = Callable[[Callable[[], Any]], Samples]  # takes the call to be timed


def run(case: Case, time_call: Time, *, pass_: int = 0, probe: bool = True, environment: str | None = None) -> Record:
    """Always a record, whatever the case does short of killing the process.

    probe: also check the result, count, measure memory and energy, and name what ran, once a run, not in every pass.
    """
    record = Record(case.id, pass_, case.to_dict(), started=time.time(), load=load(), environment=environment)
    record.cost, record.asked = cost(case), backends[case.backend].kernel
    try:
        _fill(record, case, time_call, probe)
    except Ended as end:
        record.state, record.reason, record.wanted_bytes = end.state, end.reason, end.wanted_bytes
    if record.state == "out_of_memory" and case.device == "cuda":
        torch.cuda.empty_cache()
    record.spent = {stage: round(seconds, 6) for stage, seconds in record.spent.items()}
    return record


def cost(case: Case) -> dict[str, Any]:
    """The closed forms of a case as they stand in its record."""
    on_paper = case.cost()
    return {
        "macs": {term: int(macs) for term, macs in on_paper.macs.items()},
        "score_elements": int(on_paper.score_elements),
        "useful_score_elements": int(on_paper.useful_score_elements),
        "elementwise": int(on_paper.elementwise),
        "parameters": int(on_paper.parameters),
        "moved_bytes": int(on_paper.moved_elements * case.itemsize),
        "peak_bytes": peak_bytes(case),
    }


def _fill(record: Record, case: Case, time_call: Time, probe: bool) -> None:
    if reason := refused(case):
        raise Ended("unsupported", reason)
    if reason := too_large(case):
        raise Ended("out_of_memory", reason)
    with torch_errors():
        program = _begin(record, case)
        if probe:
            with _spending(record, "check"):
                _check(record, case, program)
        _time(record, case, program, time_call)
    if probe:  # after timing, which a profiler's start would disturb
        _probe(record, case, program)


def _begin(record: Record, case: Case) -> Program:
    with _spending(record, "build"):
        program = build(case).wrapped(case.backend)
    watched = compiler.watched() if backends[case.backend].compiled else nullcontext()
    with watched as compiled, _spending(record, "first_call"):
        record.first_call_seconds = clock.first_call(program.call, case.device)
    if compiled:
        record.compile_seconds, record.matched = compiled.seconds, compiled.matched
        record.spent["compile"] = compiled.seconds
        record.spent["first_call"] -= compiled.seconds
    return program


def _time(record: Record, case: Case, program: Program, time_call: Time) -> None:
    taken = time_call(program.runner())
    if taken.telemetry:
        before, after = taken.telemetry
        record.telemetry = before if "reason" in before else {"before": before, "after": after}
        record.throttled = telemetry.throttled(before, after)
    record.seconds, record.host_seconds, record.exposed = taken.seconds, taken.host_seconds, taken.exposed
    record.spent |= taken.spent
    if taken.canary is None:
        return
    record.canary = list(taken.canary)
    if reason := disturbed(*taken.canary):
        record.state, record.reason = "disturbed", reason


def _check(record: Record, case: Case, program: Program) -> None:
    try:
        record.error = error(case, program)
    except Wrong as wrong:
        raise Ended("wrong_result", str(wrong)) from None
    except torch.OutOfMemoryError as lack:
        text = str(lack).splitlines()[0]
        raise Ended("out_of_memory", f"while checking against float64: {text}", wanted_bytes(text)) from lack
    if not record.error <= TOLERANCE[case.dtype]:
        off, allowed = record.error, TOLERANCE[case.dtype]
        record.error = record.error if record.error < float("inf") else None  # JSON has no NaN
        raise Ended("wrong_result", f"largest relative error {off:.3g} against float64; at most {allowed:g} is right")


def _probe(record: Record, case: Case, program: Program) -> None:
    """What lacks memory here, where a profiler or a counter holds some too, costs these figures and not the time."""
    try:
        with torch_errors():
            _count(record, case, program)
            _trace(record, case, program)
    except Ended as end:
        if end.state == "crashed":
            raise
        record.unprobed = f"{end.state} while probing: {end.reason}"


def _count(record: Record, case: Case, program: Program) -> None:
    with _spending(record, "count"):
        record.counts = {
            found.key: {"macs": found.macs, "uncounted": list(found.uncounted), "reason": found.reason}
            for found in findings(case, None if backends[case.backend].compiled else program)
        }


def _trace(record: Record, case: Case, program: Program) -> None:
    with _spending(record, "kernels"):
        record.ran, operators = kernels.ran(program.call, case.device)
        record.attended = kernels_of(operators)
        record.chosen = None if backends[case.backend].compiled else choices(program.call)
    with _spending(record, "energy"):
        synchronize = torch.cuda.synchronize if case.device == "cuda" else _nothing
        uuid = telemetry.uuid_of(case.device)
        record.energy_joules, record.energy_reason = energy.joules(program.call, uuid, synchronize)
    with _spending(record, "memory"):  # last: a case that has this figure is not probed again
        record.peak_bytes = memory.peak_bytes(program.call, case.device)


def _nothing() -> None:
    return None


@contextmanager
def _spending(record: Record, stage: str) -> Iterator[None]:
    """Books the seconds inside under that stage."""
    start = time.perf_counter()
    try:
        yield
    finally:
        record.spent[stage] = time.perf_counter() - start
