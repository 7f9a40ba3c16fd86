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
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin"]


class BudgetSpentError(Exception):
    """The seconds for passes beyond the least are over."""


def alone() -> dict[str, str]:
    """The environment in which PYTEST has no other plugin and no option that a user set for tests of his own.

    Another order, retries or coverage would change what is measured, or whose record a crash becomes.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def start(todo: Path, log: BinaryIO, lock: int, root: Path) -> subprocess.Popen[bytes]:
    """pytest over the harness, in a session of its own, so that Ctrl-C reaches the supervisor alone.

    root: where benchmarks/ lies. It inherits the lock: should it outlive a killed supervisor, nobody else writes to the
    folder.
    """
    command = [*PYTEST, "--color=no", "-W", "default", "--benchmark-disable-gc", "--benchmark-columns=median,rounds"]
    command += ["--cases", str(todo), "benchmarks"]
    own: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": log,
        "stderr": log,
        "start_new_session": True,
        "pass_fds": (lock,),
        "env": alone(),
    }
    return subprocess.Popen(command, cwd=root, **own)


def watch(process: subprocess.Popen[bytes], records: Path, limit: float, until: float | None) -> Iterator[set[str]]:
    """Ids of the cases that the worker has recorded so far, until it ends.

    Reads new bytes alone, since the cores are being measured. Raises TimeoutError when no line came within the limit,
    BudgetSpentError when it is past until.
    """
    old = records.read_bytes() if records.exists() else b""
    size, done, since = old.rfind(b"\n") + 1, set[str](), time.monotonic()  # a torn last line will be cut off
    while process.poll() is None:
        time.sleep(POLL)
        if records.exists() and records.stat().st_size > size:
            with records.open("rb") as file:
                file.seek(size)
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                size, since = size + len(whole) + 1, time.monotonic()
                done |= {json.loads(line)["id"] for line in whole.splitlines()}
        if time.monotonic() - since > limit:
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
