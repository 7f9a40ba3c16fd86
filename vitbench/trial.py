"""From a case to its record: refuse, build, check, probe, time."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.check import TOLERANCE, Wrong, error
from vitbench.counting import findings
from vitbench.fit import too_large
from vitbench.measure import clock, kernels, memory
from vitbench.measure.environment import load
from vitbench.peak import peak_bytes
from vitbench.program import Program, build
from vitbench.record import Record

# What SDPA, cuDNN and Triton say where a kernel cannot run a case.
NO_KERNEL = ("No available kernel", "No viable backend", "No valid execution plans", "out of resource")

Time = Callable[[Callable[[], Any]], list[float]]  # the call to be timed -> seconds of every sample


class Ended(Exception):
    """A case that ends without a time: its state, and why in one sentence."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state, self.reason = state, reason


def run(case: Case, time_call: Time, *, pass_: int = 0, probe: bool = True, environment: str | None = None) -> Record:
    """Always a record, whatever the case does short of killing the process.

    probe: also check the result, count, measure memory and name what ran, which need not be done in every pass.
    """
    record = Record(case.id, pass_, case.to_dict(), started=time.time(), load=load(), environment=environment)
    record.cost = cost(case)
    try:
        _fill(record, case, time_call, probe)
    except Ended as end:
        record.state, record.reason = end.state, end.reason
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
    if reason := backends[case.backend].unsupported(case):
        raise Ended("unsupported", reason)
    if reason := too_large(case):
        raise Ended("out_of_memory", reason)
    torch.compiler.reset()  # or torch stops compiling after a few shapes and runs eagerly without a word
    with _torch_errors():
        program = build(case).wrapped(case.backend)
        record.first_call_seconds = clock.first_call(program.call, case.device)
        if probe:
            _check(record, case, program)
        record.seconds = time_call(program.runner())
        if probe:  # after timing, which a profiler's start would disturb
            _probe(record, case, program)


def _check(record: Record, case: Case, program: Program) -> None:
    try:
        record.error = error(case, program)
    except Wrong as wrong:
        raise Ended("wrong_result", str(wrong)) from None
    if not record.error <= TOLERANCE[case.dtype]:
        off, allowed = record.error, TOLERANCE[case.dtype]
        record.error = record.error if record.error < float("inf") else None  # JSON has no NaN
        raise Ended("wrong_result", f"largest relative error {off:.3g} against float64; at most {allowed:g} is right")


def _probe(record: Record, case: Case, program: Program) -> None:
    record.counts = {
        found.key: {"macs": found.macs, "uncounted": list(found.uncounted), "reason": found.reason}
        for found in findings(case)
    }
    record.peak_bytes = memory.peak_bytes(program.call, case.device)
    record.ran = kernels.ran(program.call, case.device)


@contextmanager
def _torch_errors() -> Iterator[None]:
    """Turns torch's errors for lack of memory or of a kernel into the state they mean; others become crashed.

    Torch says why a kernel was not used in warnings; they join the reason.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except Ended:
            raise
        except (Exception, SystemExit) as error:
            text = (str(error).strip().splitlines() or [""])[0]
            if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text:
                raise Ended("out_of_memory", text) from error
            if any(words in str(error) for words in NO_KERNEL):
                why = "; ".join([text, *(str(warning.message).splitlines()[0] for warning in said)])
                raise Ended("unsupported", f"torch has no such kernel for this case: {why}") from error
            traceback.print_exc()  # into worker.log
            raise Ended("crashed", f"{type(error).__name__}: {text}") from error
