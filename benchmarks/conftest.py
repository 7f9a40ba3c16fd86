"""The harness's inputs: which cases, in which order, and where their records go.

Without --cases, `pytest benchmarks/` runs the smoke cases on the CPU and keeps no records.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from vitbench.case import Case
from vitbench.process import begun
from vitbench.record import Record, append_line
from vitbench.sweep import select
from vitbench.worker import TAKES, UNWRITABLE


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("vitbench")
    group.addoption("--cases", type=Path, help="JSON file that the supervisor wrote: pass, cases, environment, records")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--cases")
    config.stash[PLAN] = json.loads(path.read_text()) if path else None
    if not path:
        return
    if sys.platform == "linux":  # a supervisor that is killed takes its worker with it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
    if os.getppid() != config.stash[PLAN]["supervisor"]:
        pytest.exit("the supervisor is gone", returncode=1)


def pytest_collection_finish(session: pytest.Session) -> None:
    if path := session.config.getoption("--cases"):
        begun(path).touch()


PLAN = pytest.StashKey[Any]()
KEPT = pytest.StashKey[dict[str, Record]]()  # the last record of each case in this process


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from vitbench.measure.clock import timer

    if "clock" not in metafunc.fixturenames:  # peers.py brings its own cases
        return
    plan = metafunc.config.stash[PLAN]
    cases = [Case.from_dict(flat) for flat in plan["cases"]] if plan else list(select([], "smoke", "cpu"))
    marked = []
    for case, take in itertools.product(cases, range(TAKES)):
        clock = timer(case.device)
        mark = pytest.mark.benchmark(timer=clock)
        marked.append(pytest.param(case, clock, marks=mark, id=f"{case.id}, again" if take else case.id))
    metafunc.parametrize(("case", "clock"), marked)


@pytest.fixture
def plan(pytestconfig: pytest.Config) -> dict[str, Any]:
    """pass, environment id, ids of the cases to probe, state of the caches, seconds of samples a case."""
    alone = {"pass": 0, "environment": None, "probe": None, "cache": "warm", "seconds": 0.05, "records": None}
    return pytestconfig.stash[PLAN] or alone


@pytest.fixture
def kept(pytestconfig: pytest.Config) -> dict[str, Record]:
    """The last record of each case that this process kept."""
    return pytestconfig.stash.setdefault(KEPT, {})


@pytest.fixture
def keep(plan: dict[str, Any], kept: dict[str, Record]) -> Callable[[Record], None]:
    """Append a record to the run's file, flushed to disk at once. The first says what starting the process took."""

    def keep_record(record: Record) -> None:
        if not kept:
            record.spent["start"] = round((record.started or 0.0) - psutil.Process().create_time(), 6)
        kept[record.id] = record
        if plan["records"]:
            try:
                append_line(Path(plan["records"]), record.to_dict())
            except OSError as error:  # a full disk: no later case could be recorded either
                pytest.exit(f"{plan['records']}: {error.strerror}", returncode=UNWRITABLE + (error.errno or 0))

    return keep_record
