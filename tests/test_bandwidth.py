"""The bandwidth that a machine attains: how much is copied, and what counts as a byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from vitbench.measure import peaks as module
from vitbench.measure.peaks import peaks

MIB = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Copies of 8 MiB, caches of 1 MiB, 1 GiB free, and a system that says nothing about its caches."""
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module, "SIZES", {"cpu": (8,)})
    monkeypatch.setattr(module, "COPIED_BYTES", {"cpu": 8 * MIB})
    monkeypatch.setattr(module, "USUAL_CACHE", MIB)
    monkeypatch.setattr(module, "CPUS", tmp_path)
    monkeypatch.setattr(module, "free_bytes", lambda device: 1024 * MIB)


def test_a_bandwidth_counts_what_is_read_and_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[torch.Tensor] = []

    def takes_two_seconds(device: str, call: Callable[[], Any], budget: float) -> float:
        copies.append(call())
        return 2.0

    monkeypatch.setattr(module, "_fastest", takes_two_seconds)
    assert module._copy_rate("cpu") == 2 * 8 * MIB / 2.0
    assert copies[0].nbytes == 8 * MIB and abs(copies[0].std() - 1) < 0.01, "expected normal numbers, copied"


@pytest.mark.parametrize(
    ("cache", "free", "expected"),
    [(1, 800, 8), (3, 800, 12), (1, 8 * 6, 6), (1, 8 * 4, 4), (1, 8 * 4 - 1, None), (30, 8 * 100, None)],
)
def test_a_buffer_is_larger_than_the_caches_and_small_beside_the_memory(
    monkeypatch: pytest.MonkeyPatch, cache: int, free: int, expected: int | None
) -> None:
    monkeypatch.setattr(module, "USUAL_CACHE", cache * MIB)
    monkeypatch.setattr(module, "free_bytes", lambda device: free * MIB)
    assert module._buffer_bytes("cpu") == (None if expected is None else expected * MIB)


def test_without_memory_for_a_buffer_there_is_no_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda device: MIB)
    found = peaks("cpu", ["float32"])
    assert found["bytes_per_second"] is None
    assert found["macs_per_second"]["float32"] > 0


def test_the_last_caches_are_added_up_and_each_counted_once(tmp_path: Path) -> None:
    assert module._cache_bytes("cpu") == MIB, "expected the usual size where the system says nothing"
    for cpu, third in ((0, "0-1"), (1, "0-1"), (2, "2-3")):
        for index, (level, shared, size) in enumerate(((1, str(cpu), "48K"), (3, third, "2048K"))):
            cache = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            for name, value in (("level", level), ("shared_cpu_list", shared), ("size", size)):
                (cache / name).write_text(f"{value}\n")
    unsaid = tmp_path / "cpu0" / "cache" / "index9"
    unsaid.mkdir()
    (unsaid / "level").write_text("4\n")
    assert module._cache_bytes("cpu") == 4 * MIB
