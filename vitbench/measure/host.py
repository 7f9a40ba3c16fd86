"""What the machine gives to this process and who else takes of it: cores, memory, limits, governor, clocks, processes.

In SI units; None is what is not known.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

from vitbench.measure import environment, memory, telemetry

CPUS = Path("/sys/devices/system/cpu")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_CONTROL_GROUPS = Path("/proc/self/cgroup")
SAMPLE_SECONDS = 0.3  # over which other processes are watched
BUSY = 0.1  # of a core: who takes less is not listed
Found = dict[str, Any]


def device(kind: str, facts: Found) -> Found:
    """What measures. kind: cpu or cuda. facts: of its host, as in environment.json."""
    system = psutil.virtual_memory()
    return {
        "kind": kind,
        "gpu": _gpu() if kind == "cuda" else None,
        "cpu": facts["cpu"],
        "physical_cores": facts["cores"],
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "core_quota": _core_quota(),
        "threads": facts["threads"],
        "memory_bytes": system.total,
        "memory_free_bytes": system.available,
        "memory_limit_bytes": _memory_limit(system.total),
    }


def state(kind: str) -> Found:
    """What may differ at the next look: clocks, governor, load, who takes the cores, and what NVML says of a GPU."""
    clock = psutil.cpu_freq()  # MHz; 0 where it is not known
    governors = {file.read_text().strip() for file in CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return {
        "clock_hz": int(clock.current * 1e6) or None if clock else None,
        "clock_most_hz": int(clock.max * 1e6) or None if clock else None,
        "governor": ", ".join(sorted(governors)) or None,  # several where cores differ
        "load": environment.load(),
        "cores": psutil.cpu_count(logical=False) or os.cpu_count(),
        "busiest": _busiest(),
        "gpu": telemetry.read(telemetry.uuid_of(kind)) if kind == "cuda" else None,
    }


def _gpu() -> Found:
    return {
        "name": torch.cuda.get_device_name(),
        "uuid": telemetry.uuid_of("cuda"),
        "compute_capability": ".".join(map(str, torch.cuda.get_device_capability())),
        "memory_bytes": torch.cuda.get_device_properties().total_memory,
        "memory_free_bytes": memory.free_bytes("cuda"),
    }


def _limits(controller: str, name: str) -> Iterator[Path]:
    """Files of that name in this process's control group and in those above it, whose limits hold as well."""
    for line in OWN_CONTROL_GROUPS.read_text().splitlines() if OWN_CONTROL_GROUPS.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        tree = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS  # version 2 has one tree for all
        group = Path(path.lstrip("/"))
        yield from (tree / each / name for each in (group, *group.parents) if (tree / each / name).exists())


def _core_quota() -> float | None:
    """Cores' worth of time that the control groups allow; None without a limit, which reads max or -1."""
    pairs = [file.read_text().split() for file in _limits("cpu", "cpu.max")]
    for file in _limits("cpu", "cpu.cfs_quota_us"):
        pairs.append([file.read_text().strip(), file.with_name("cpu.cfs_period_us").read_text()])
    return min((int(quota) / int(period) for quota, period in pairs if quota.isdigit()), default=None)


def _memory_limit(total: int) -> int | None:
    """Bytes that the control groups allow; None where that is no less than the machine has."""
    files = (*_limits("memory", "memory.max"), *_limits("memory", "memory.limit_in_bytes"))
    words = [file.read_text().strip() for file in files]
    return min((int(word) for word in words if word.isdigit() and int(word) < total), default=None)


def _busiest() -> list[Found]:
    """The three processes besides this one that take most CPU now. cores: how many each keeps busy."""
    others = [process for process in psutil.process_iter() if process.pid != os.getpid()]
    _shares(others)  # the first look starts each process's clock
    time.sleep(SAMPLE_SECONDS)
    busy = [share for share in _shares(others) if share["cores"] > BUSY]
    return sorted(busy, key=lambda share: -float(share["cores"]))[:3]


def _shares(processes: list[psutil.Process]) -> list[Found]:
    shares = []
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it has ended, or is not ours to see
            shares.append({"name": process.name(), "pid": process.pid, "cores": process.cpu_percent() / 100})
    return shares
