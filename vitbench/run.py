"""The supervisor: pass after pass, each in a fresh process, until every case has its passes.

A run is a folder: run.json (what was asked), environment.json (a line each), records.jsonl (a line each). The loop
reads what is there and runs what is missing, so going on after a crash, a kill or Ctrl-C is the same loop.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vitbench.case import Case
from vitbench.record import Record, append_line, read_lines
from vitbench.refusal import Refusal

ROOT = Path(__file__).resolve().parents[1]
CASE_LIMIT = 600.0  # seconds without a record after which the case in hand is given up
POLL = 0.25  # seconds between two looks at the records
NO_HARNESS = (2, 3, 4)  # pytest's exit codes for an error before the first test
RESTART = 77  # exit code of a worker that asks for a fresh process, its case recorded

Progress = Callable[[int, int, str], None]  # records there, records wanted, what is going on


@dataclass(frozen=True)
class Plan:
    """What a run is to do. passes: records wanted of each case. seconds: of samples, a case and pass."""

    profile: str
    sweeps: tuple[str, ...]
    device: str
    passes: int
    seconds: float
    seed: int
    cases: tuple[Case, ...]
    asked_by: tuple[tuple[str, ...], ...]  # of each case, the sweeps that ask for it

    def to_dict(self) -> dict[str, Any]:
        rest = {name: getattr(self, name) for name in ("profile", "device", "passes", "seconds", "seed")}
        asked = {case.id: list(sweeps) for case, sweeps in zip(self.cases, self.asked_by, strict=True)}
        return {**rest, "sweeps": list(self.sweeps), "cases": asked}


def run(folder: Path, plan: Plan, environment: dict[str, Any], progress: Progress) -> None:
    """Bring the folder up to the plan. Raises Refusal where the folder holds another plan or environment.

    KeyboardInterrupt ends the worker and passes on; every record so far stays.
    """
    with _locked(folder) as lock:
        _agree(folder, plan, environment)
        for pass_ in range(plan.passes):
            while missing := _missing(folder, plan, pass_):
                random.Random(plan.seed + pass_).shuffle(missing)
                _worker(folder, plan, pass_, missing, environment["id"], progress, lock)


def recorded(folder: Path) -> set[tuple[str, int]]:
    """(case id, pass) of every record in the folder."""
    return {(line["id"], line["pass"]) for line in read_lines(folder / "records.jsonl")}


def complete(folder: Path, plan: Plan) -> bool:
    done = recorded(folder)
    return all((case.id, pass_) in done for case in plan.cases for pass_ in range(plan.passes))


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
        except BaseException:
            _end(process)
            raise
    if process.returncode in NO_HARNESS and len(recorded(folder)) == there:
        raise Refusal(f"the harness cannot start: {_how(process.returncode, folder / 'worker.log')}")
    if process.returncode != RESTART and set(cases) & set(_missing(folder, plan, pass_)):
        _note(folder, pass_, cases, "crashed", _how(process.returncode, folder / "worker.log"), environment)


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
    probed = {line["id"] for line in read_lines(folder / "records.jsonl") if line["peak_bytes"] is not None}
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


def _how(code: int, log: Path) -> str:
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"the process ended with code {code}; {log.name} ends: {lines[-1] if lines else 'empty'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the worker and all that it started (compilers), which share its session."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sent)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                continue


def _agree(folder: Path, plan: Plan, environment: dict[str, Any]) -> None:
    """Write down what is asked and where, or refuse a folder that holds something else."""
    asked, described = folder / "run.json", folder / "environment.json"
    if asked.exists() and json.loads(asked.read_text())["plan"] != plan.to_dict():
        raise Refusal(f"{folder} holds another plan (profile, sweeps, device, passes or cases); expected a new folder")
    for line in read_lines(described):
        if line["id"] != environment["id"]:
            aside = ("id", "commit", "dirty")
            differing = [key for key in environment if key not in aside and line.get(key) != environment[key]]
            raise Refusal(
                f"{folder} was made in another environment ({', '.join(differing)} differ); name a new folder"
            )
    if not asked.exists():
        content = {"schema": 1, "plan": plan.to_dict(), "argv": sys.argv[1:], "started": time.time()}
        asked.write_text(json.dumps(content, indent=1) + "\n")
    if not described.exists():
        append_line(described, environment)


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """One supervisor a folder; yields the file descriptor that holds the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a+")
    except OSError as error:
        raise Refusal(f"results folder {folder} cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"{folder} is in use by another run; wait for it or name another folder") from None
        yield lock.fileno()


def newest(results: Path, pattern: str = "*") -> Path | None:
    """The run of that name pattern that was started last; None if there is none."""
    runs: Sequence[Path] = [path.parent for path in results.glob(f"{pattern}/run.json")]
    return max(runs, key=lambda path: json.loads((path / "run.json").read_text())["started"], default=None)
