"""A machine whose cores, memory, packages and GPU are planted; what a test asks of the doctor there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from vitbench.measure import environment, host, memory, telemetry

HOST = {"cpu": "A Processor", "cores": 8, "threads": 8, "python": "3.11.7"}
GPU = {
    **{"sm_clock_hz": 345_000_000, "sm_clock_most_hz": 1_980_000_000, "memory_clock_hz": None},
    **{"temperature_celsius": 41, "power_watts": 118.4, "throttle_reasons": ["sw_power_cap"]},
    **{"other_processes": [{"pid": 77, "bytes": 2_500_000_000}], "not_read": {"memory_clock_hz": "NVML says no"}},
}


class Process:
    """One of psutil's: its first share is of no time, so 0. gone: it has ended since it was listed."""

    def __init__(self, pid: int, name: str, percent: float, gone: bool = False) -> None:
        self.pid, self.percents, self.known, self.gone = pid, [0.0, percent], name, gone

    def name(self) -> str:
        if self.gone:
            raise psutil.NoSuchProcess(self.pid)
        return self.known

    def cpu_percent(self) -> float:
        return self.percents.pop(0)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing to mend: 8 idle cores, all packages. Its folder, where files of the kernel can be put."""
    monkeypatch.chdir(tmp_path)
    for name in ("CPUS", "CONTROL_GROUPS", "OWN_CONTROL_GROUPS"):
        monkeypatch.setattr(host, name, tmp_path / name)
    monkeypatch.setattr(host, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(environment, "environment", lambda device: HOST)
    monkeypatch.setattr(environment, "load", lambda: 0.25)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * 10**9, available=60 * 10**9))
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2100.0, max=0.0))
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 8)
    monkeypatch.setattr(psutil, "process_iter", lambda: [])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=78 * 10**9))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"1.{len(name)}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(telemetry, "driver", lambda: None)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: None)
    return tmp_path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What NVML tells of a GPU that is there for the length of a test."""
    told = dict(GPU)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: SimpleNamespace(total_memory=150 * 10**9))
    monkeypatch.setattr(memory, "free_bytes", {"cuda": 140 * 10**9}.__getitem__)
    monkeypatch.setattr(telemetry, "driver", lambda: "580.1")
    monkeypatch.setattr(telemetry, "uuid_of", {"cuda": "GPU-1"}.__getitem__)
    monkeypatch.setattr(telemetry, "read", {"GPU-1": told}.__getitem__)
    return told


def plant(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
