"""What the machine gives, to this process among others, is read from where the kernel, psutil and NVML say it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_machine
import psutil
import pytest
from fake_machine import HOST, Process, plant

from vitbench.measure import host

machine, gpu = fake_machine.machine, fake_machine.gpu  # fixtures, which pytest finds by these names


def test_governors_of_all_cores_are_told(machine: Path) -> None:
    assert host.state("cpu")["governor"] is None
    for core, governor in enumerate(("powersave", "performance", "powersave")):
        plant(machine / f"CPUS/cpu{core}/cpufreq/scaling_governor", governor)
    assert host.state("cpu")["governor"] == "performance, powersave"


@pytest.mark.parametrize("clock", [None, SimpleNamespace(current=0.0, max=0.0)])
def test_a_clock_that_the_kernel_hides_is_none(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", lambda: clock)
    state = host.state("cpu")
    assert state["clock_hz"] is None and state["clock_most_hz"] is None


def test_the_three_that_take_most_are_told_and_this_process_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Process(os.getpid(), "python", 90.0)
    others = [Process(5, "idle", 1.0), Process(6, "[make]", 70.0), Process(7, "gone", 80.0, gone=True), own]
    more = [Process(8, "stress", 150.0), Process(9, "some", 20.0), Process(10, "less", 15.0)]
    monkeypatch.setattr(psutil, "process_iter", lambda: [*others, *more])
    assert host.state("cpu")["busiest"] == [
        {"name": "stress", "pid": 8, "cores": 1.5},
        {"name": "[make]", "pid": 6, "cores": 0.7},
        {"name": "some", "pid": 9, "cores": 0.2},
    ]


VERSION_2 = {"slice/cpu.max": "200000 100000", "slice/job/cpu.max": "max 100000", "memory.max": "8000"}
VERSION_1 = {
    **{"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
    "memory/job/memory.limit_in_bytes": "8000",
}
UNLIMITED = {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "memory.max": "8000"}


@pytest.mark.parametrize(
    ("groups", "files", "cores", "size"),
    [
        ("0::/slice/job", VERSION_2, 2.0, 8000),
        ("4:memory:/job\n3:cpu,cpuacct:/elsewhere\n0::/", VERSION_1, 2.0, 8000),
        ("3:cpu:/", UNLIMITED, None, None),  # nor does a group that this process is not in limit it
    ],
)
def test_limits_of_control_groups_hold_from_above(
    machine: Path, groups: str, files: dict[str, str], cores: float | None, size: int | None
) -> None:
    plant(machine / "OWN_CONTROL_GROUPS", groups)
    for name, text in files.items():
        plant(machine / "CONTROL_GROUPS" / name, text)
    device = host.device("cpu", HOST)
    assert (device["core_quota"], device["memory_limit_bytes"]) == (cores, size)


def test_a_gpu_and_its_state(gpu: dict[str, Any]) -> None:
    assert host.device("cuda", HOST)["gpu"] == {
        **{"name": "NVIDIA H200", "uuid": "GPU-1", "compute_capability": "9.0"},
        **{"memory_bytes": 150 * 10**9, "memory_free_bytes": 140 * 10**9},
    }
    assert host.state("cuda")["gpu"] == gpu
