"""What the supervisor refuses before it measures anything. Faults that strike while it runs are in test_faults.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import LIMIT

from vitbench.evidence import Effort
from vitbench.folder import agree
from vitbench.plan import Plan
from vitbench.run import ROOT


def refused(*words: str) -> str:
    """What the command says, once it has refused."""
    command = [sys.executable, "-m", "benchmarks", "--profile", "smoke", "--device", "cpu", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_folder_of_another_plan_is_refused(tmp_path: Path) -> None:
    agree(tmp_path, Plan("smoke", ("batch",), "cpu", "warm", 0.1, 0, (), ()), Effort(1, 1), {"id": "here"})
    assert "another plan" in refused("--run", str(tmp_path), "--sweep", "patch")


@pytest.mark.skipif(os.getuid() == 0 and not Path("/proc/version").exists(), reason="needs a folder nobody can write")
def test_an_unwritable_results_folder_is_refused() -> None:
    assert "cannot be written" in refused("--results", "/proc/vitbench")
