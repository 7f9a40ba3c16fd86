"""The cases of a run that constants can be fitted to: what they demand, and the seconds that were measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.cpu import DTYPE, TILE, demand
from vitbench.evidence import usable
from vitbench.folder import read_asked, records_by_case
from vitbench.program import build
from vitbench.refusal import Refusal
from vitbench.source import Opened
from vitbench.step import Trace
from vitbench.trace import trace

LEAST = 24  # programs that differ; half of them must tell all constants


class Measured(NamedTuple):
    """sweeps: that asked for it. demand: as of cpu.demand; what demands the same is taken to be the same program."""

    case: Case
    sweeps: tuple[str, ...]
    demand: tuple[float, ...]
    seconds: float


def traced(case: Case) -> Trace:
    """The case's program as torch would run it on the CPU, not compiled. Raises Refusal where it cannot be traced."""
    program = build(case, device="meta")
    opened = Opened(case.id, program.module, program.inputs, None)
    return trace(opened, case.shape.batch, device="cpu", dtype=case.dtype, mode=case.mode)


def demanded(case: Case) -> tuple[float, ...]:
    return demand(traced(case).works(tile=TILE))


def measured(folder: Path, told: Callable[[int, int], None]) -> tuple[list[Measured], Counter[str]]:
    """The cases to fit to; and how many were left out, by reason. told: is given the cases done and all cases.

    Raises Refusal where the folder holds no run, or too few programs differ.
    """
    asked, records = read_asked(folder)["plan"]["cases"], records_by_case(folder)
    left_out: Counter[str] = Counter()
    chosen: list[tuple[Case, float]] = []
    for lines in records.values():
        case, used = Case.from_dict(lines[0]["case"]), usable(lines)
        reason = "without a time" if not used else _unfit(case)
        if reason:
            left_out[reason] += 1
        else:
            chosen.append((case, median(median(line["seconds"]) for line in used)))
    found = []
    for n, (case, seconds) in enumerate(chosen):
        told(n, len(chosen))
        found.append(Measured(case, tuple(asked.get(case.id, ())), demanded(case), seconds))
    if (distinct := len({one.demand for one in found})) < LEAST:
        why = "".join(f", {count} {reason}" for reason, count in left_out.items())
        raise Refusal(
            f"{folder} has times of {distinct} different programs to calibrate with{why}; expected {LEAST} or more: "
            "make bench DEVICE=cpu"
        )
    return found, left_out


def _unfit(case: Case) -> str | None:
    if case.device != "cpu":
        return f"on {case.device}"
    if case.dtype != DTYPE:
        return f"in {case.dtype}"
    return "compiled" if backends[case.backend].compiled else None
