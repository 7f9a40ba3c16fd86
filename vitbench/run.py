"""The supervisor: pass after pass, each in a fresh process, until the evidence for every case is enough.

The loop reads what the run's folder holds and runs what is missing, so going on after a crash, a kill or Ctrl-C is the
same loop.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitbench.case import Case
from vitbench.evidence import Effort
from vitbench.folder import (
    agree,
    book,
    locked,
    read_peaks,
    read_records,
    recorded,
    records_by_case,
    wanted,
    write_whole,
)
from vitbench.pace import START, Pace, shuffled
from vitbench.plan import Plan
from vitbench.process import BudgetSpentError, end, how, last_line, start, watch
from vitbench.record import Record, append_line
from vitbench.refusal import Refusal
from vitbench.worker import RESTART, TAKES, UNWRITABLE

ROOT = Path(__file__).resolve().parents[1]
NO_HARNESS = (2, 3, 4, 5)  # pytest's exit codes for an error before the first test, or for none

# Records there, records wanted, what is going on, seconds left (None: not predicted)
Progress = Callable[[int, int, str, float | None], None]


@dataclass(frozen=True)
class Run:
    """What every pass needs to know. lock: file descriptor that holds the folder. until: when to stop adding passes."""

    folder: Path
    plan: Plan
    effort: Effort
    environment: str
    progress: Progress
    lock: int
    until: float | None
    pace: Pace = field(default_factory=lambda: Pace({}))

    @property
    def records(self) -> Path:
        return self.folder / "records.jsonl"


def run(
    folder: Path,
    plan: Plan,
    effort: Effort,
    environment: dict[str, Any],
    progress: Progress,
    predicted: Mapping[str, float] | None = None,
) -> None:
    """Bring the folder's evidence up to the effort. Raises Refusal where it holds another plan or environment.

    predicted: seconds of a call by case id, as far as they are known, for the order of the first pass and the time
    left.

    KeyboardInterrupt ends the worker and passes on; every record so far stays.
    """
    until = None if effort.budget is None else time.monotonic() + effort.budget
    with locked(folder) as lock:
        agree(folder, plan, effort, environment)
        _peaks(folder, plan)
        this = Run(folder, plan, effort, environment["id"], progress, lock, until, Pace(predicted or {}))
        with suppress(BudgetSpentError):
            _passes(this)


def _passes(run: Run) -> None:
    for pass_ in itertools.count():
        while cases := wanted(run.folder, run.plan, run.effort):
            lacking = {case: usable for case, (passes, usable) in cases.items() if pass_ not in passes}
            if not lacking:
                break
            short = [case for case, usable in lacking.items() if usable < run.effort.least]
            cheap_first = run.pace.seconds if pass_ == 0 else {}
            order = shuffled(short or list(lacking), run.plan.seed + pass_, cheap_first)
            _worker(run, pass_, order, added=not short)
        if not cases:
            return


def _peaks(folder: Path, plan: Plan) -> None:
    """What the machine attains, measured once a run by a process of its own."""
    if read_peaks(folder):
        return
    began, dtypes = time.monotonic(), dict.fromkeys(case.dtype for case in plan.cases)
    command = [sys.executable, "-m", "vitbench.measure.peaks", plan.device, *dtypes]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Refusal(f"the machine's peaks cannot be measured: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    write_whole(folder / "peaks.json", json.loads(done.stdout))
    book(folder, "peaks", time.monotonic() - began)


def _worker(run: Run, pass_: int, cases: list[Case], added: bool) -> None:
    """One process over the cases, in that order. If it ends early, the case in hand gets a record that says so.

    added: the cases have the least number of passes, and get another as far as the budget goes.
    """
    began = time.monotonic()
    if added and run.until is not None and began > run.until:
        raise BudgetSpentError
    try:
        code = _ended(run, pass_, cases, added)
    except TimeoutError as error:
        if in_hand := _in_hand(run, pass_, cases):
            _note(run, pass_, in_hand, "timed_out", str(error))
        return
    finally:
        book(run.folder, "passes", time.monotonic() - began)
    if code > UNWRITABLE:  # a full disk: the case in hand did nothing wrong
        raise OSError(code - UNWRITABLE, os.strerror(code - UNWRITABLE), str(run.records))
    in_hand = _in_hand(run, pass_, cases)
    if code in NO_HARNESS and in_hand == cases[0]:
        raise Refusal(f"the harness cannot start; its log ends: {last_line(run.folder / 'worker.log')}")
    if code != RESTART and in_hand:
        _note(run, pass_, in_hand, "crashed", how(code))


def _ended(run: Run, pass_: int, cases: list[Case], added: bool) -> int:
    """The exit code of a worker over the cases, its progress told meanwhile."""
    there = len(recorded(run.folder))
    more = max(1, run.effort.least - pass_) - 1  # passes over them after this one
    total = there + len(cases) * (1 + more)
    whole = ahead = START + run.pace.visits(cases, pass_ == 0)
    later = more * (START + run.pace.visits(cases, first=False))
    with tempfile.TemporaryDirectory() as scratch, (run.folder / "worker.log").open("ab") as log:
        todo = Path(scratch) / "todo.json"
        todo.write_text(json.dumps(_todo(run, pass_, cases)))
        process = start(todo, log, run.lock, ROOT)
        try:
            for done in watch(process, run.records, todo, run.effort.case_limit, run.until if added else None):
                open_ = [case for case in cases if case.id not in done]
                ahead = run.pace.visits(open_, pass_ == 0) + START * (not done)
                left = run.pace.left(whole - ahead, ahead + later)
                at = (open_ or cases[-1:])[0]
                run.progress(there + len(done), total, f"pass {pass_ + 1}{' (added)' * added}: {at.id}", left)
        finally:
            run.pace.done += whole - ahead
            end(process)
    return process.returncode


def _todo(run: Run, pass_: int, cases: list[Case]) -> dict[str, Any]:
    """What benchmarks/conftest.py reads. A case is checked and probed until one pass of it has ended well."""
    probed = {line["id"] for line in read_records(run.folder) if line["peak_bytes"] is not None}
    return {
        "supervisor": os.getpid(),
        "pass": pass_,
        "environment": run.environment,
        "cache": run.plan.cache,
        "seconds": run.plan.seconds,
        "records": str(run.records.resolve()),
        "probe": [case.id for case in cases if case.id not in probed],
        "cases": [case.to_dict() for case in cases],
    }


def _in_hand(run: Run, pass_: int, cases: list[Case]) -> Case | None:
    """The case that the worker was at: the first without a record of that pass, or disturbed and to be taken again."""
    lines = records_by_case(run.folder)
    for case in cases:
        states = [line["state"] for line in lines.get(case.id, []) if line["pass"] == pass_]
        if not states or (states[-1] == "disturbed" and len(states) < TAKES):
            return case
    return None


def _note(run: Run, pass_: int, case: Case, state: str, reason: str) -> None:
    """A record in the name of the worker, which left none."""
    record = Record(case.id, pass_, case.to_dict(), state, reason, environment=run.environment)
    append_line(run.records, record.to_dict())
