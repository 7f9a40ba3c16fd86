"""NVML through its real binding, in fresh processes, against a driver (fake_nvml.c) whose figures are planted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import LIMIT

ROOT = Path(__file__).resolve().parents[1]
CARD = {"handle": 1, "sm": 1755, "sm_most": 1980, "memory": 2619, "temperature": 61, "power": 412500, "reasons": 0}
QUIET = {"compute": "-", "graphics": "-"}
START = """
import json, os, sys, time
from types import SimpleNamespace
from vitbench.measure import energy, telemetry
"""

Ask = Callable[..., Any]


def card(uuid: str, **changes: Any) -> str:
    """Lines of the planted file for one GPU; None takes a figure away."""
    facts = {**CARD, **QUIET, **changes}
    return "".join(f"{uuid} {what} {value}\n" for what, value in facts.items() if value is not None)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with a libnvidia-ml.so.1 of a new driver, of an old one, and one that is no library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc or gcc) to build the fake driver with")
    folders = {name: tmp_path_factory.mktemp(name) for name in ("new", "old", "broken")}
    for name, flags in (("new", []), ("old", ["-DOLD"])):
        target = folders[name] / "libnvidia-ml.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", *flags, "-o", target, ROOT / "tests/fake_nvml.c"], check=True)
    (folders["broken"] / "libnvidia-ml.so.1").write_text("no library")
    return folders


@pytest.fixture
def ask(libraries: dict[str, Path], tmp_path: Path) -> Ask:
    """Runs code that sets `answer`, in a process that meets the planted driver."""

    def asked(planted: str, code: str, library: str = "new") -> Any:
        (tmp_path / "planted").write_text(f"driver init 0\ndriver version 570.86.15\n{planted}")
        variables = {"LD_LIBRARY_PATH": str(libraries[library]), "FAKE_NVML": str(tmp_path / "planted")}
        done = subprocess.run(
            [sys.executable, "-c", f"{START}{code}\nprint(json.dumps(answer))"],
            cwd=ROOT,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return asked


def is_a_sentence(reason: str) -> bool:
    return re.fullmatch(r"\S[^\n]{10,}[^\s.]", reason) is not None
