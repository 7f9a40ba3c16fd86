"""The worker as a process: started, watched, ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

POLL = 0.25  # seconds between two looks at the records
START_LIMIT = 600.0  # seconds until a worker comes to its first case; a busy machine takes long to import torch


class BudgetSpentError(Exception):
    """The seconds for passes beyond the least are over."""


def harness(root: Path, *words: str, **variables: str) -> dict[str, Any]:
    """What to give to subprocess for pytest with its benchmark plugin alone, and nothing of a user's own tests.

    Another order, retries or coverage would change what is measured, or whose record a crash becomes; an installed
    suite may lie within a user's project, whose options and conftest.py pytest would find.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin"]
    places = ["-c", os.devnull, "--rootdir", str(root), "--confcutdir", str(root / "benchmarks")]
    return {
        "args": [sys.executable, "-m", "pytest", "-q", *plugins, *places, *words],
        "cwd": root,
        "env": {**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        "stdin": subprocess.DEVNULL,
    }


def start(todo: Path, log: BinaryIO, lock: int, root: Path) -> subprocess.Popen[bytes]:
    """pytest over the harness, in a session of its own, so that Ctrl-C reaches the supervisor alone.

    root: where benchmarks/ lies. It inherits the lock: should it outlive a killed supervisor, nobody else writes to the
    folder.
    """
    words = ["--color=no", "-W", "default", "--benchmark-disable-gc", "--benchmark-columns=median,rounds"]
    own: dict[str, Any] = {"stdout": log, "stderr": log, "start_new_session": True, "pass_fds": (lock,)}
    return subprocess.Popen(**harness(root, *words, "--cases", str(todo), "benchmarks"), **own)


def begun(todo: Path) -> Path:
    """The file that a worker makes beside its list of cases, as it comes to the first."""
    return todo.with_name("begun")


def watch(
    process: subprocess.Popen[bytes], records: Path, todo: Path, limit: float, until: float | None
) -> Iterator[set[str]]:
    """Ids of the cases that the worker has recorded so far, until it ends.

    Reads new bytes alone, since the cores are being measured. Raises TimeoutError when it has begun and no line came
    within the limit, or has not begun in START_LIMIT; BudgetSpentError when it is past until.
    """
    old = records.read_bytes() if records.exists() else b""
    size, done, since = old.rfind(b"\n") + 1, set[str](), time.monotonic()  # a torn last line will be cut off
    starting = True
    while process.poll() is None:
        time.sleep(POLL)
        if starting and begun(todo).exists():
            starting, since = False, time.monotonic()
        if records.exists() and records.stat().st_size > size:
            with records.open("rb") as file:
                file.seek(size)
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                size, since = size + len(whole) + 1, time.monotonic()
                done |= {json.loads(line)["id"] for line in whole.splitlines()}
        if starting and time.monotonic() - since > START_LIMIT:
            raise TimeoutError(f"the process came to no case within {START_LIMIT:g} seconds")
        if not starting and time.monotonic() - since > limit:
            raise TimeoutError(f"no result within {limit:g} seconds")
        if until is not None and time.monotonic() > until:
            raise BudgetSpentError
        yield done


def how(code: int) -> str:
    """It ended, in words."""
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with code {code}; worker.log says more"


def last_line(log: Path) -> str:
    """What the log says last."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop the worker, and all that it started (compilers), which share its session."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
