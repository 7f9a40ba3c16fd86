"""From a case to its record: what it measured, or the state it ended in and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from vitbench import trial
from vitbench.backend import Backend, backends
from vitbench.case import Case
from vitbench.measure.sampling import Samples
from vitbench.operators.global_ import Global
from vitbench.operators.window import Window
from vitbench.peak import peak_bytes
from vitbench.record import Record
from vitbench.shape import Shape

Run = Callable[[Callable[..., torch.Tensor]], Record]
CASE = Case(Window(4, 2), Shape(2, 9, 10, 32, 2), "naive", scope="block")


def once(call: Callable[[], Any]) -> Samples:
    call()
    return Samples([0.25])


class Odd(Backend):
    """A backend that does what it is given."""

    name = "naive.odd"
    description = "what no backend should do"

    def __init__(self, odd: Callable[..., torch.Tensor]) -> None:
        self.odd = odd

    def attend(self, *args: Any, **given: Any) -> torch.Tensor:
        return self.odd(*args, **given)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """The record of CASE on a backend that attends as given."""

    def run_odd(odd: Callable[..., torch.Tensor]) -> Record:
        list(backends)  # loads them
        monkeypatch.setitem(backends._items, Odd.name, Odd(odd))
        record = trial.run(replace(CASE, backend=Odd.name), once)
        json.dumps(record.to_dict(), allow_nan=False)
        return record

    return run_odd


def test_a_case_that_runs_has_every_figure() -> None:
    record = trial.run(CASE, once, pass_=3, environment="abc")
    assert (record.state, record.reason, record.pass_, record.environment) == ("ok", None, 3, "abc")
    assert record.seconds == [0.25]
    assert record.error is not None and record.error < 1e-6
    assert record.peak_bytes == record.cost["peak_bytes"] == peak_bytes(CASE)
    assert record.counts is not None and record.counts["dispatch.meta"]["macs"] == CASE.cost().total_macs
    assert record.ran
    json.dumps(record.to_dict(), allow_nan=False)


def test_without_probing_only_time_is_taken() -> None:
    record = trial.run(CASE, once, probe=False)
    assert (record.state, record.seconds) == ("ok", [0.25])
    assert (record.error, record.counts, record.peak_bytes, record.ran) == (None, None, None, None)


def test_an_unsupported_case_says_why_and_still_has_its_cost() -> None:
    record = trial.run(replace(CASE, backend="sdpa.efficient"), once)
    assert (record.state, record.seconds) == ("unsupported", None)
    assert record.reason is not None and "CUDA alone" in record.reason
    assert record.cost["macs"] == dict(CASE.cost().macs)


@pytest.mark.parametrize("wrong", [1.5, float("nan"), float("inf")])
def test_a_wrong_result_gets_no_time(run: Run, wrong: float) -> None:
    record = run(lambda q, k, v, *, bias, mask: wrong * backends["naive"].attend(q, k, v, bias=bias, mask=mask))
    assert (record.state, record.seconds) == ("wrong_result", None)
    assert record.reason is not None and "at most 2e-05 is right" in record.reason


def test_a_program_that_raises_is_a_crash_with_its_reason(run: Run) -> None:
    def attend(*_: Any, **__: Any) -> torch.Tensor:
        raise ZeroDivisionError("no such number")

    record = run(attend)
    assert (record.state, record.reason, record.seconds) == ("crashed", "ZeroDivisionError: no such number", None)


def test_lack_of_memory_is_a_state_of_its_own(run: Run) -> None:
    def attend(*_: Any, **__: Any) -> torch.Tensor:
        return torch.empty(2**60)

    record = run(attend)
    assert (record.state, record.seconds) == ("out_of_memory", None)
    assert record.reason


def test_what_cannot_fit_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Case(Global(), Shape(1, 224, 224, 64, 1), "naive", scope="core")
    monkeypatch.setattr("vitbench.fit.free_bytes", lambda device: 10**9)
    record = trial.run(large, once)
    assert record.state == "out_of_memory"
    assert record.reason is not None and "1000000000 are free; not started" in record.reason


def test_an_interrupt_is_no_state_and_passes_on(run: Run) -> None:
    def attend(*_: Any, **__: Any) -> torch.Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(attend)
