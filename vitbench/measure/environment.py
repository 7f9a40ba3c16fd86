"""Where a record was made: all that must be equal for two records to be of one kind.

`python -m vitbench.measure.environment [cpu|cuda]` prints it as JSON, for the device named or torch's own choice. The
supervisor asks that way, in a process of its own, so that it holds no device itself.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import torch

from vitbench import processor as cpu
from vitbench.case import DEVICES
from vitbench.measure import telemetry
from vitbench.refusal import Refusal

VARIABLES = (  # they move times, or say what runs
    *("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "ATEN_", "ONEDNN_", "DNNL_", "MALLOC_", "LD_PRELOAD"),
    *("TORCH", "PYTORCH_", "CUDA_", "CUBLAS_", "NVIDIA_TF32", "TRITON_", "TIMM_"),
)
PACKAGES = ("torch", "triton", "fvcore", "numpy", "pytest-benchmark", "nvidia-ml-py")


ROOT = Path(__file__).resolve().parents[2]


def environment(device: str) -> dict[str, Any]:
    """Machine, versions and source; what changes while it runs is not in here.

    id: a digest of the rest but the commit, which changes with every line of documentation.
    """
    facts: dict[str, Any] = {
        "device": device,
        "device_name": _device_name(device),
        "device_uuid": _device_uuid(device),
        **processor(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "cuda": torch.version.cuda if device == "cuda" else None,
        "cudnn": torch.backends.cudnn.version() if device == "cuda" else None,
        "driver": telemetry.driver() if device == "cuda" else None,
        "float32_products": torch.get_float32_matmul_precision(),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)},
        "packages": {name: _version(name) for name in PACKAGES},
        "source": source(),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    status = _git("status", "--porcelain", "--", "vitbench", "benchmarks")
    return {
        "id": digest[:12],
        **facts,
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
    }


def processor() -> dict[str, Any]:
    """What a calibration holds for: cpu, cores, threads."""
    return {"cpu": cpu.name(), "cores": psutil.cpu_count(logical=False), "threads": torch.get_num_threads()}


def source() -> str:
    """Digest of the code that measures: every file of vitbench/ and benchmarks/."""
    digest = hashlib.sha256()
    for folder in ("vitbench", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml"):
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def load() -> float:
    """Processes that wanted a core, mean of the last minute."""
    return os.getloadavg()[0]


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else cpu.name()


def _device_uuid(device: str) -> str | None:
    return str(torch.cuda.get_device_properties().uuid) if device == "cuda" else None


def usable_device(name: str | None) -> str:
    """The device of that name, or torch's own choice where it is None. Raises Refusal for one that is not here."""
    visible = torch.cuda.is_available()
    if name is None:
        return "cuda" if visible else "cpu"
    if name not in DEVICES:
        raise Refusal(f"unknown device {name!r}; known: {', '.join(DEVICES)}")
    if name == "cuda" and not visible:
        raise Refusal("device 'cuda': torch sees no CUDA device here; expected cpu, or a machine that has one")
    return name


def main(words: list[str]) -> int:
    try:
        print(json.dumps(environment(usable_device(words[0] if words else None))))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
