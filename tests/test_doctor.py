"""The doctor tells what this machine is and what runs on it; each thing that is wrong comes with its remedy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_machine
import psutil
import pytest
import torch
from fake_machine import Process, plant

from vitbench import cli, doctor
from vitbench.backend import backends
from vitbench.measure import environment, telemetry

machine, gpu = fake_machine.machine, fake_machine.gpu  # fixtures, which pytest finds by these names


def asked(capsys: pytest.CaptureFixture[str], device: str = "cpu") -> dict[str, Any]:
    assert cli.main(["doctor", "--device", device, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_all_that_is_found_on_a_cpu(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys)
    rows = {row["name"]: row for row in found.pop("backends")}
    assert rows.keys() == {backend.name for backend in backends}
    assert rows["sdpa"] == {**rows["sdpa"], "refused": [], "runs": "all"}
    sentence = "FlexAttention has no backward on the CPU"
    refused = [{"dtype": dtype, "mode": "training", "reason": sentence} for dtype in ("float32", "float16", "bfloat16")]
    about = "compiled FlexAttention; bias and mask in its score_mod (Dong et al. 2024)"
    assert rows["fused.flex"] == {"name": "fused.flex", "description": about, "refused": refused, "runs": "some"}
    assert rows["sdpa.cudnn"]["runs"] == "none" and len(rows["sdpa.cudnn"]["refused"]) == 6
    packages = {"torch": "1.5", "CUDA": torch.version.cuda, "cuDNN": None, "driver": None, "triton": "1.6"}
    packages |= {name: f"1.{len(name)}" for name in doctor.PACKAGES}
    assert list(found) == ["device", "state", "versions", "counters", "disk", "mend"]
    assert found == {
        "device": {
            **{"kind": "cpu", "gpu": None, "cpu": "A Processor", "physical_cores": 8, "usable_cores": 8},
            **{"core_quota": None, "threads": 8, "memory_bytes": 64 * 10**9, "memory_free_bytes": 60 * 10**9},
            "memory_limit_bytes": None,
        },
        "state": {
            **{"clock_hz": 2_100_000_000, "clock_most_hz": None, "governor": None, "load": 0.25, "cores": 8},
            **{"busiest": [], "gpu": None},
        },
        "versions": [
            {"name": name, "version": version, "remedy": None}
            for name, version in {"Python": "3.11.7", **packages}.items()
        ],
        "counters": [
            {"name": "dispatch", "places": ["device", "meta"], "lacking": None},
            {"name": "fvcore", "places": ["meta"], "lacking": None},
        ],
        "disk": {"folder": str(machine), "free_bytes": 78 * 10**9},
        "mend": [],
    }


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "scipy":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = doctor.findings("cpu")
    remedy = "scipy is not installed: pip install scipy"
    assert {"name": "scipy", "version": None, "remedy": remedy} in found["versions"]
    assert found["mend"] == [remedy]


def test_a_counter_without_its_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = doctor.findings("cpu")
    remedy = "fvcore is not installed: pip install fvcore"
    assert {row["name"]: row["lacking"] for row in found["counters"]} == {"dispatch": None, "fvcore": remedy}
    assert found["mend"] == [remedy]


def test_a_backend_without_its_compiler_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = doctor.findings("cpu")
    remedy = "torch.compile needs a C++ compiler on the CPU: install g++"
    assert {row["name"]: row["runs"] for row in found["backends"]}["naive.compiled"] == "none"
    assert found["mend"] == [remedy]


def test_a_governor_that_saves_power_is_a_warning(machine: Path) -> None:
    for core, governor in enumerate(("performance", "powersave")):
        plant(machine / f"CPUS/cpu{core}/cpufreq/scaling_governor", governor)
        found = doctor.findings("cpu")
        assert bool(found["mend"]) == (governor == "powersave")
    assert "is performance, powersave: sudo cpupower frequency-set --governor performance" in found["mend"][0]


def test_who_takes_the_cores_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "process_iter", lambda: [Process(6, "[make]", 70.0), Process(8, "stress", 150.0)])
    noisy = (
        "a load of 2.2 on 8 cores: times will be noisy; stop stress (pid 8) and [make] (pid 6) or pass a longer budget"
    )
    assert doctor.findings("cpu")["mend"] == [noisy]


def test_a_load_of_nobody_in_sight_is_told_beside_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "load", lambda: 0.81)
    assert doctor.findings("cpu")["mend"][0].startswith("a load of 0.8 on 8 cores: times will be noisy; wait")


@pytest.mark.parametrize(
    ("quota", "usable", "cores"), [("200000", 8, 2), ("max", 3, 3), ("50000", 8, 1), ("max", 8, None)]
)
def test_more_threads_than_usable_cores_are_a_warning(
    machine: Path, quota: str, usable: int, cores: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(machine / "OWN_CONTROL_GROUPS", "0::/")
    plant(machine / "CONTROL_GROUPS/cpu.max", f"{quota} 100000")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(usable)), raising=False)
    advice = f"torch has 8 threads for {cores} usable cores: export OMP_NUM_THREADS={cores}"
    assert doctor.findings("cpu")["mend"] == ([advice] if cores else [])


def test_little_disk_and_a_driver_that_torch_does_not_use(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "results").mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5 * 10**6))
    monkeypatch.setattr(telemetry, "driver", lambda: "580.1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    driver, disk = doctor.findings("cpu")["mend"]
    assert "torch sees no GPU: install a torch built for" in driver
    assert disk == f"5.00 MB free in {machine / 'results'}: free some, results go there"


def test_a_gpu_that_is_throttled_or_shared_is_a_warning(
    gpu: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, "cuda")
    assert found["device"]["gpu"]["name"] == "NVIDIA H200" and found["state"]["gpu"] == gpu
    assert "the GPU is throttled (sw_power_cap): let it cool, or raise its power limit" in found["mend"]
    shared = "the GPU is shared: times will be noisy; stop pid 77, which holds 2.50 GB"
    assert shared in found["mend"]
    assert not any("torch sees no GPU" in sentence for sentence in found["mend"])


def test_a_gpu_that_tells_nothing_comes_with_its_reason(gpu: dict[str, Any]) -> None:
    gpu.clear()
    gpu["reason"] = "NVML does not start; see whether nvidia-smi runs here"
    assert gpu["reason"] in doctor.findings("cuda")["mend"]
