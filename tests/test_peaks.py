"""What a machine attains: the arithmetic on a clock that is known exactly, and a quick look with the real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from vitbench.measure import peaks as module
from vitbench.measure.peaks import main, peaks
from vitbench.refusal import Refusal

MIB = 1 << 20
Clock = Callable[..., Iterator[float]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Products of 512 and 4096 MACs, copies of 8 MiB."""
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module, "SIZES", {"cpu": (8, 16), "cuda": (1024,)})
    monkeypatch.setattr(module, "COPIED_BYTES", {"cpu": 8 * MIB, "cuda": 1024 * MIB})
    monkeypatch.setattr(module, "USUAL_CACHE", MIB)
    monkeypatch.setattr(module, "CPUS", tmp_path)


@pytest.fixture
def calls_take(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets how many seconds each timed call takes, in turn; what is left in the iterator was not called."""

    def take(*seconds: float) -> Iterator[float]:
        left = iter(seconds)

        def clock() -> Iterator[float]:
            now = 0.0
            while True:
                yield now
                now += next(left)
                yield now

        monkeypatch.setattr(module, "timer", lambda device: clock().__next__)
        return left

    return take


@pytest.mark.parametrize(("seconds", "rate"), [((30, 2, 20, 40, 8, 32), 4096 / 8), ((30, 2, 20, 40, 64, 32), 512 / 2)])
def test_a_rate_is_that_of_the_best_product(
    calls_take: Clock, monkeypatch: pytest.MonkeyPatch, seconds: tuple[int, ...], rate: float
) -> None:
    monkeypatch.setattr(module, "SECONDS", 100.0)
    left = calls_take(*seconds, 1e-9)
    assert module._product_rate("cpu", torch.float32) == rate
    assert list(left) == [1e-9], "expected three calls of each size, which fill its half of the time"


def test_a_size_that_would_take_too_long_is_left_out(calls_take: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 47.0)  # at 256 a second, three products of 4096 take 48
    left = calls_take(30.0, 2.0, 20.0, 1e-9)
    assert module._product_rate("cpu", torch.float32) == 256
    assert list(left) == [1e-9]


@pytest.mark.parametrize(("budget", "timed"), [(0.0, 3), (30.0, 3), (31.0, 4), (60.0, 6)])
def test_calls_are_repeated_until_the_time_is_over_but_at_least_three_times(
    calls_take: Clock, budget: float, timed: int
) -> None:
    left = calls_take(*[10.0] * 9)
    calls: list[int] = []
    assert module._fastest("cpu", lambda: calls.append(1), budget) == 10.0
    assert len(list(left)) == 9 - timed
    assert len(calls) == timed + 1, "expected one call that is not timed, to load the kernel"


def test_a_dtype_without_products_has_no_rate() -> None:
    found = peaks("cpu", ["bool", "float32"])["macs_per_second"]
    assert found["bool"] is None
    assert found["float32"] > 0


def fail(words: str) -> Callable[..., Any]:
    def mm(*_: Any, **__: Any) -> Any:
        raise RuntimeError(words)

    return mm


def test_cublas_says_so_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mm", fail("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasGemmEx"))
    assert module._product_rate("cpu", torch.bfloat16) is None


def test_any_other_failure_is_no_missing_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mm", fail("CUDA error: an illegal memory access was encountered"))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        module._product_rate("cpu", torch.float32)


def test_inputs_are_standard_normal_and_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(module, "SIZES", {"cpu": (64,)})
    monkeypatch.setattr(torch, "mm", lambda a, b, out: seen.append(torch.stack([a, b])))
    before = torch.get_rng_state()
    module._product_rate("cpu", torch.float64)
    module._product_rate("cpu", torch.float64)
    assert torch.equal(seen[0], seen[-1]) and not torch.equal(seen[0][0], seen[0][1])
    assert abs(seen[0].mean()) < 0.05 and abs(seen[0].std() - 1) < 0.05
    assert torch.equal(torch.get_rng_state(), before)


def test_one_object_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "float32", "float64", "bfloat16"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["device", "macs_per_second", "bytes_per_second", "seconds"]
    assert found["device"] == "cpu"
    assert list(found["macs_per_second"]) == ["float32", "float64", "bfloat16"]
    assert all(rate > 0 for rate in found["macs_per_second"].values())
    assert 1e7 < found["bytes_per_second"] < 1e13
    assert found["seconds"] > 4 * module.SECONDS


@pytest.mark.parametrize("name", ["float31", "randn", ""])
def test_an_unknown_dtype_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match=r"unknown dtype .*float32, bfloat16"):
        peaks("cpu", [name])


@pytest.mark.parametrize(
    ("words", "reason"), [([], "expected a device"), (["cpu"], "one dtype or more"), (["tpu", "float32"], "cpu, cuda")]
)
def test_a_command_without_sense_ends_with_2(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and reason in printed.err


@pytest.mark.cuda
def test_a_gpu_attains_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    monkeypatch.setattr(module, "free_bytes", lambda device: 8 * 1024 * MIB)
    found = peaks("cuda", ["float32", "float16"])
    assert 1e11 < found["macs_per_second"]["float32"] < found["macs_per_second"]["float16"] < 1e16
    assert 1e10 < found["bytes_per_second"] < 1e14
