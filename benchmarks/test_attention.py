"""The pytest-benchmark harness: one test a case, one record a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vitbench import trial
from vitbench.case import Case
from vitbench.measure.sampling import Samples, sample
from vitbench.record import Record
from vitbench.worker import RESTART


def test_attention(
    case: Case,
    clock: Any,
    benchmark: Any,
    plan: dict[str, Any],
    kept: dict[str, Record],
    keep: Callable[[Record], None],
) -> None:
    """Times the case with the benchmark fixture, set-up outside the timed region, and keeps its record."""
    before = kept.get(case.id)
    if before and before.state != "disturbed":
        pytest.skip("need not be taken again")

    def time_call(call: Callable[[], Any]) -> Samples:
        return sample(call, case.device, plan["cache"], plan["seconds"], clock, benchmark)

    probe = (plan["probe"] is None or case.id in plan["probe"]) and not before
    record = trial.run(case, time_call, pass_=plan["pass"], probe=probe, environment=plan["environment"])
    keep(record)
    if record.state in ("unsupported", "out_of_memory", "disturbed"):
        pytest.skip(f"{record.state}: {record.reason}")
    if record.state == "crashed" and case.device == "cuda":
        pytest.exit("a CUDA error may stick to this process", returncode=RESTART)
    assert record.state == "ok", f"{record.state}: {record.reason}"
