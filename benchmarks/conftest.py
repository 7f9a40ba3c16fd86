"""The harness's inputs: which cases, in which order, and where their records go.

Without --cases, `pytest benchmarks/` runs the smoke cases on the CPU and keeps no records.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vitbench.case import Case
from vitbench.record import Record, append_line
from vitbench.sweep import select


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


PLAN = pytest.StashKey[Any]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from vitbench.measure.clock import timer

    plan = metafunc.config.stash[PLAN]
    cases = [Case.from_dict(flat) for flat in plan["cases"]] if plan else list(select([], "smoke", "cpu"))
    marked = [pytest.param(case, marks=pytest.mark.benchmark(timer=timer(case.device)), id=case.id) for case in cases]
    metafunc.parametrize("case", marked)


@pytest.fixture
def plan(pytestconfig: pytest.Config) -> dict[str, Any]:
    """pass, environment id, ids of the cases to probe, seconds of samples a case."""
    return pytestconfig.stash[PLAN] or {"pass": 0, "environment": None, "probe": None, "seconds": 0.05, "records": None}


@pytest.fixture
def keep(plan: dict[str, Any]) -> Callable[[Record], None]:
    """Append a record to the run's file, flushed to disk at once."""

    def keep_record(record: Record) -> None:
        if plan["records"]:
            append_line(Path(plan["records"]), record.to_dict())

    return keep_record
