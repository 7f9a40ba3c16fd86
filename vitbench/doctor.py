"""What this machine is, what runs on it, and what would disturb or prevent a measurement.

`findings` is plain data in SI units; None is what is not known. `show` prints it, as doctor_page has it.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

from vitbench.backend import Backend, backends, refused
from vitbench.case import Case
from vitbench.counter import counters
from vitbench.doctor_page import DTYPES, on_gpu, si
from vitbench.measure import environment, host, telemetry
from vitbench.measure.host import Found
from vitbench.operator import MODES, parse_operator
from vitbench.shape import Shape

PACKAGES = (  # as in pyproject.toml, which a checkout that is not installed cannot be asked for
    *("torch", "numpy", "pandas", "scipy", "sympy", "fvcore", "pytest", "pytest-benchmark"),
    *("matplotlib", "rich", "psutil", "nvidia-ml-py"),
)
TYPICAL = Shape(batch=1, height=14, width=14, dim=768, heads=12, prefix=1)  # a layer of ViT-B/16
NOISY = 0.1  # of all cores: more than that taken by others disturbs
LEAST_DISK_BYTES = 10**9


def findings(device: str) -> Found:
    """Each section, and under "mend" a sentence with its remedy for all that is not as it should be."""
    facts = environment.environment("cpu")  # of the host; what is asked of a GPU is asked below
    found = {
        "device": host.device(device, facts),
        "state": host.state(device),
        "versions": _versions(facts["python"]),
        "backends": [_backend(backend, device) for backend in backends],
        "counters": [
            {"name": each.name, "places": [*each.places], "lacking": each.lacking()}
            for each in counters
            if each.places  # the others serve audits alone
        ],
        "disk": _disk(),
    }
    return {**found, "mend": list(dict.fromkeys(_to_mend(found)))}


def _versions(python: str) -> list[Found]:
    """remedy: None where a package is here or is not one that must be."""
    found: dict[str, str | None] = {"Python": python, "torch": _version("torch"), "CUDA": torch.version.cuda}
    found["cuDNN"] = str(torch.backends.cudnn.version() or "") or None
    found |= {"driver": telemetry.driver(), "triton": _version("triton")}
    found |= {name: _version(name) for name in PACKAGES}
    missing = {name: f"{name} is not installed: pip install {name}" for name in PACKAGES if found[name] is None}
    return [{"name": name, "version": version, "remedy": missing.get(name)} for name, version in found.items()]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _backend(backend: Backend, device: str) -> Found:
    """refused: dtype, mode and reason of every typical case that cannot run here."""
    row: Found = {"name": backend.name, "description": backend.description, "refused": []}
    for mode in MODES:
        for dtype in DTYPES:
            operator = parse_operator("global" if backend.attends else "linear")
            if reason := refused(Case(operator, TYPICAL, backend.name, dtype, device, mode=mode)):
                row["refused"].append({"dtype": dtype, "mode": mode, "reason": reason})
    return {**row, "runs": {0: "all", len(MODES) * len(DTYPES): "none"}.get(len(row["refused"]), "some")}


def _disk() -> Found:
    """Where results go, or would."""
    results = Path("results")
    folder = (results if results.is_dir() else Path()).resolve()
    return {"folder": str(folder), "free_bytes": shutil.disk_usage(folder).free}


def _to_mend(found: Found) -> Iterator[str]:
    yield from _to_mend_of_the_machine(found["device"], found["state"])
    versions = {row["name"]: row for row in found["versions"]}
    if versions["driver"]["version"] and not torch.cuda.is_available():
        yield "there is an NVIDIA driver, but torch sees no GPU: install a torch built for a CUDA that this driver runs"
    yield from (row["remedy"] for row in found["versions"] if row["remedy"])
    reasons = [refused["reason"] for row in found["backends"] for refused in row["refused"]]
    yield from (reason for reason in reasons if "install" in reason.partition(": ")[2])  # others are as they are
    yield from (row["lacking"] for row in found["counters"] if row["lacking"])
    if found["disk"]["free_bytes"] < LEAST_DISK_BYTES:
        yield f"{si(found['disk']['free_bytes'], 'B')} free in {found['disk']['folder']}: free some, results go there"


def _to_mend_of_the_machine(device: Found, state: Found) -> Iterator[str]:
    if state["governor"] not in (None, "performance"):
        yield f"the scaling governor is {state['governor']}: sudo cpupower frequency-set --governor performance"
    load = max(state["load"], sum(process["cores"] for process in state["busiest"]))
    if load > NOISY * state["cores"]:
        names = " and ".join(f"{process['name']} (pid {process['pid']})" for process in state["busiest"])
        remedy = f"stop {names}" if names else "wait until it is over"
        yield f"a load of {load:.1f} on {state['cores']} cores: times will be noisy; {remedy} or pass a longer budget"
    cores = max(1, int(min(device["usable_cores"], device["core_quota"] or device["usable_cores"])))
    if device["threads"] > cores:
        yield f"torch has {device['threads']} threads for {cores} usable cores: export OMP_NUM_THREADS={cores}"
    gpu = state["gpu"] or {}
    if "reason" in gpu:
        yield gpu["reason"]
    if gpu.get("throttle_reasons"):
        yield f"the GPU is throttled ({', '.join(gpu['throttle_reasons'])}): let it cool, or raise its power limit"
    for process in gpu.get("other_processes") or ():
        yield f"the GPU is shared: times will be noisy; stop {on_gpu(process)}"
