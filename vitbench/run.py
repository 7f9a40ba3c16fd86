"""The supervisor: pass after pass, each in a fresh process, until every case has its passes.

The loop reads what the run's folder holds and runs what is missing, so going on after a crash, a kill or Ctrl-C is the
same loop.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from vitbench.case import Case
from vitbench.folder import Plan, agree, locked, read_records, recorded
from vitbench.record import Record, append_line
from vitbench.refusal import Refusal

ROOT = Path(__file__).resolve().parents[1]
CASE_LIMIT = 600.0  # seconds without a record after which the case in hand is given up
POLL = 0.25  # seconds between two looks at the records
NO_HARNESS = (2, 3, 4)  # pytest's exit codes for an error before the first test
RESTART = 77  # exit code of a worker that asks for a fresh process, its case recorded

Progress = Callable[[int, int, str], None]  # records there, records wanted, what is going on


def run(folder: Path, plan: Plan, environment: dict[str, Any], progress: Progress) -> None:
    """Bring the folder up to the plan. Raises Refusal where the folder holds another plan or environment.

    KeyboardInterrupt ends the worker and passes on; every record so far stays.
    """
    with locked(folder) as lock:
        agree(folder, plan, environment)
        for pass_ in range(plan.passes):
            while missing := _missing(folder, plan, pass_):
                random.Random(plan.seed + pass_).shuffle(missing)
                _worker(folder, plan, pass_, missing, environment["id"], progress, lock)


def _missing(folder: Path, plan: Plan, pass_: int) -> list[Case]:
    done = recorded(folder)
    return [case for case in plan.cases if (case.id, pass_) not in done]


def _worker(
    folder: Path, plan: Plan, pass_: int, cases: list[Case], environment: str, progress: Progress, lock: int
) -> None:
    """One process over the cases, in that order. If it ends early, the case in hand gets a record that says so."""
    there, wanted = len(recorded(folder)), len(plan.cases) * plan.passes
    with tempfile.TemporaryDirectory() as scratch, (folder / "worker.log").open("ab") as log:
        todo = Path(scratch) / "todo.json"
        todo.write_text(json.dumps(_todo(folder, plan, pass_, cases, environment)))
        process = _start(todo, log, lock)
        try:
            for done in _watch(process, folder / "records.jsonl"):
                at = cases[min(done, len(cases) - 1)]
                progress(there + done, wanted, f"pass {pass_ + 1} of {plan.passes}: {at.id}")
        except TimeoutError as error:
            _end(process)
            _note(folder, pass_, cases, "timed_out", str(error), environment)
            return
        finally:
            _end(process)
    if process.returncode in NO_HARNESS and len(recorded(folder)) == there:
        raise Refusal(f"the harness cannot start; its log ends: {_last_line(folder / 'worker.log')}")
    if process.returncode != RESTART and set(cases) & set(_missing(folder, plan, pass_)):
        _note(folder, pass_, cases, "crashed", _how(process.returncode), environment)


def _start(todo: Path, log: BinaryIO, lock: int) -> subprocess.Popen[bytes]:
    """pytest over the harness, in a session of its own, so that Ctrl-C reaches the supervisor alone.

    It inherits the lock: should it outlive a killed supervisor, nobody else writes to the folder.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "-W", "default"]
    command += ["--benchmark-disable-gc", "--benchmark-columns=median,rounds", "--cases", str(todo), "benchmarks"]
    own: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": log,
        "stderr": log,
        "start_new_session": True,
        "pass_fds": (lock,),
    }
    return subprocess.Popen(command, cwd=ROOT, **own)


def _watch(process: subprocess.Popen[bytes], records: Path) -> Iterator[int]:
    """How many lines the worker has appended so far, until it ends.

    Reads new bytes alone, since the cores are being measured. Raises TimeoutError when no line came for too long.
    """
    size, done, since = records.stat().st_size if records.exists() else 0, 0, time.monotonic()
    while process.poll() is None:
        time.sleep(POLL)
        if records.exists() and records.stat().st_size > size:
            with records.open("rb") as file:
                file.seek(size)
                new = file.read()
            size, done, since = size + len(new), done + new.count(b"\n"), time.monotonic()
        if time.monotonic() - since > CASE_LIMIT:
            raise TimeoutError(f"no result within {CASE_LIMIT:g} seconds")
        yield done


def _todo(folder: Path, plan: Plan, pass_: int, cases: list[Case], environment: str) -> dict[str, Any]:
    """What benchmarks/conftest.py reads. A case is checked and probed until one pass of it has ended well."""
    probed = {line["id"] for line in read_records(folder) if line["peak_bytes"] is not None}
    return {
        "supervisor": os.getpid(),
        "pass": pass_,
        "environment": environment,
        "seconds": plan.seconds,
        "records": str((folder / "records.jsonl").resolve()),
        "probe": [case.id for case in cases if case.id not in probed],
        "cases": [case.to_dict() for case in cases],
    }


def _note(folder: Path, pass_: int, cases: list[Case], state: str, reason: str, environment: str) -> None:
    """A record for the first of the cases that has none: it was in hand when the worker ended."""
    done = recorded(folder)
    case = next(case for case in cases if (case.id, pass_) not in done)
    record = Record(case.id, pass_, case.to_dict(), state, reason, environment=environment)
    append_line(folder / "records.jsonl", record.to_dict())


def _how(code: int) -> str:
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with code {code}; worker.log says more"


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the worker, and all that it started (compilers), which share its session."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
