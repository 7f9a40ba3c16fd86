"""The pytest-benchmark harness: one test a case, one record a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vitbench import trial
from vitbench.case import Case
from vitbench.measure.clock import CLOCKS_RISE, preparation, timer, warm_up
from vitbench.record import Record
from vitbench.run import RESTART

LEAST_ROUNDS, MOST_ROUNDS = 3, 50


def test_attention(case: Case, benchmark: Any, plan: dict[str, Any], keep: Callable[[Record], None]) -> None:
    """Times the case with the benchmark fixture, set-up outside the timed region, and keeps its record."""

    def time_call(call: Callable[[], Any]) -> list[float]:
        prepare, now = preparation(case.device, call), timer(case.device)

        def sample() -> float:
            prepare()
            start = now()
            call()
            return float(now() - start)

        usual = warm_up(sample, plan["seconds"], CLOCKS_RISE[case.device])
        rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, int(plan["seconds"] / max(usual, 1e-9))))
        benchmark.pedantic(call, setup=prepare, rounds=rounds)
        return [round(seconds, 9) for seconds in benchmark.stats.stats.data]  # no clock here tells less than 1 ns

    probe = plan["probe"] is None or case.id in plan["probe"]
    record = trial.run(case, time_call, pass_=plan["pass"], probe=probe, environment=plan["environment"])
    keep(record)
    if record.state in ("unsupported", "out_of_memory"):
        pytest.skip(f"{record.state}: {record.reason}")
    if record.state == "crashed" and case.device == "cuda":
        pytest.exit("a CUDA error may stick to this process", returncode=RESTART)
    assert record.state == "ok", f"{record.state}: {record.reason}"
