"""What is no attention of the inputs gets no time, however it goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from vitbench import trial
from vitbench.backend import backends
from vitbench.backends.naive import Naive
from vitbench.case import Case
from vitbench.measure.sampling import Samples
from vitbench.operators.global_ import Global
from vitbench.record import Record
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 4, 16, 2)


def record_of(monkeypatch: pytest.MonkeyPatch, spoil: Callable[..., Tensor], mode: str = "inference") -> Record:
    right = Naive().attend

    def attend(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        return spoil(right(q, k, v, **given), q, v)

    monkeypatch.setattr(backends["naive"], "attend", attend)

    def time_call(call: Callable[[], object]) -> Samples:
        call()
        return Samples([1.0])

    return trial.run(Case(Global(), SHAPE, "naive", scope="core", mode=mode), time_call)


def inputs_changed(out: Tensor, q: Tensor, v: Tensor) -> Tensor:
    q.mul_(1e10)
    v.zero_()
    return out


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda out, q, v: out.double(), "a result is torch.float64; right is torch.float32"),
        (lambda out, q, v: out[0, 0], "a result has the shape (2, 12, 8); right is (2, 1, 2, 12, 8)"),
        (lambda out, q, v: out[None], "a result has the shape (1, 2, 1, 2, 12, 8)"),
        (lambda out, q, v: out[..., :1, :], "a result has the shape (2, 1, 2, 1, 8)"),
        (lambda out, q, v: out * 1.001, "largest relative error"),
        (lambda out, q, v: out * float("nan"), "largest relative error nan"),
        (inputs_changed, "a call changes its inputs"),
    ],
)
def test_a_wrong_result_gets_no_time(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[..., Tensor], reason: str
) -> None:
    record = record_of(monkeypatch, spoil)
    assert record.state == "wrong_result"
    assert record.reason is not None and record.reason.startswith(reason)
    assert record.seconds is None


def test_a_right_result_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record_of(monkeypatch, lambda out, q, v: out).seconds == [1.0]


def test_an_exit_inside_a_backend_is_its_own_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(out: Tensor, q: Tensor, v: Tensor) -> Tensor:
        raise SystemExit(5)

    record = record_of(monkeypatch, leave)
    assert (record.state, record.reason) == ("crashed", "SystemExit: 5")


@pytest.mark.parametrize("backend", ["naive", "sdpa", "sdpa.math"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_that_are_zero_on_paper_are_no_fault(backend: str, dtype: str) -> None:
    case = Case(Global(), Shape(2, 1, 1, 8, 2), backend, dtype, scope="core", mode="training")
    record = trial.run(case, lambda call: Samples([1.0]))
    assert (record.state, record.reason) == ("ok", None)


def test_a_wrong_gradient_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> Tensor:  # type: ignore[override]
            return 2 * grad

    record = record_of(monkeypatch, lambda out, q, v: Twice.apply(out), mode="training")
    assert record.state == "wrong_result"
