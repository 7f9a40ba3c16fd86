"""The supervisor through the command that a user runs: resuming, kills, locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from vitbench.folder import locked
from vitbench.run import ROOT

BENCH = [sys.executable, "-m", "benchmarks", "--profile", "smoke", "--device", "cpu"]


def start(*words: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*BENCH, *words], cwd=ROOT, **pipes)  # type: ignore[call-overload, no-any-return]


def lines(folder: Path) -> list[bytes]:
    path = folder / "records.jsonl"
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def wait_for_records(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while len(lines(folder)) < count:
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < limit, "no records came"
        time.sleep(0.02)


def worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    return next(child for child in psutil.Process(process.pid).children() if "pytest" in child.cmdline())


def test_a_run_goes_on_after_its_supervisor_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start("--run", str(folder))
    wait_for_records(folder, 3, first)
    worker = worker_of(first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    psutil.wait_procs([worker], timeout=10)
    assert not worker.is_running(), "the worker outlived its supervisor"
    kept = lines(folder)

    second = start("--run", str(folder))
    output, _ = second.communicate(timeout=240)
    assert second.returncode == 0, output
    records = [json.loads(line) for line in lines(folder)]
    assert lines(folder)[: len(kept)] == kept, "an earlier record was touched"
    asked = json.loads((folder / "run.json").read_text())["plan"]["cases"]
    assert sorted(record["id"] for record in records) == sorted(asked), "each case once, none twice, none missing"
    assert "report.html" in output


def test_a_killed_worker_costs_one_case_and_the_run_ends_non_zero(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start("--run", str(folder))
    wait_for_records(folder, 3, process)
    worker_of(process).send_signal(signal.SIGKILL)
    output, _ = process.communicate(timeout=240)
    records = [json.loads(line) for line in lines(folder)]
    crashed = [record for record in records if record["state"] == "crashed"]
    assert process.returncode == 1, output
    assert [record["reason"] for record in crashed] == ["the process was ended by SIGKILL"]
    assert crashed[0]["seconds"] is None
    assert crashed[0]["id"] in output
    assert len(records) == len(json.loads((folder / "run.json").read_text())["plan"]["cases"])


def test_ctrl_c_keeps_every_record_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start("--run", str(folder))
    wait_for_records(folder, 2, process)
    worker = worker_of(process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"--run {folder}\n" in output
    assert not worker.is_running()
    assert len(lines(folder)) >= 2


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder):  # as a supervisor or its worker holds it
        second = start("--run", str(folder), "--sweep", "batch")
        output, _ = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "in use by another run" in output
    assert lines(folder) == []


def test_the_worker_holds_the_lock_too(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start("--run", str(folder))
    wait_for_records(folder, 1, process)
    held = [Path(file.path) for file in worker_of(process).open_files()]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert folder / "lock" in held


def test_a_folder_of_another_plan_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    start("--run", str(folder), "--sweep", "batch").communicate(timeout=120)
    process = start("--run", str(folder), "--sweep", "patch")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "another plan" in output


@pytest.mark.skipif(os.getuid() == 0 and not Path("/proc/version").exists(), reason="needs a folder nobody can write")
def test_an_unwritable_results_folder_is_refused() -> None:
    process = start("--results", "/proc/vitbench")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "cannot be written" in output and "Traceback" not in output
