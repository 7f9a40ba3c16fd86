"""The doctor's page fits the terminal, and the command vitbench says in one line why it has none."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import fake_machine
import pytest
from rich.console import Console

from vitbench import cli, doctor, doctor_page

ROOT = Path(__file__).resolve().parents[1]
machine, gpu = fake_machine.machine, fake_machine.gpu  # fixtures, which pytest finds by these names


def printed(found: dict[str, Any], width: int = 80) -> str:
    text = io.StringIO()
    doctor_page.show(found, Console(file=text, width=width, highlight=False))
    return text.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_sections_are_printed_in_order_and_within_the_terminal(width: int) -> None:
    text = printed(doctor.findings("cpu"), width)
    titles = re.findall(r"^(device|state|versions|backends|counters|disk|nothing to mend)", text, re.MULTILINE)
    assert titles == ["device", "state", "versions", "backends", "counters", "disk", "nothing to mend"]
    assert max(map(len, text.splitlines())) <= width
    assert "60.0 GB of 64.0 GB free" in text and "2.10 GHz" in text and "refuses training: FlexAttention" in text
    assert text.count("unknown: the kernel does not show it") == 2


def test_what_to_mend_stands_last_and_where_it_was_found() -> None:
    found = doctor.findings("cpu")
    remedy = "scipy is not installed: pip install scipy"
    row = next(row for row in found["versions"] if row["name"] == "scipy")
    row["version"], row["remedy"], found["mend"] = None, remedy, [remedy]
    text = printed(found)
    assert re.search(r"scipy -\s", text)
    assert text.rstrip().endswith(f"\nwhat to mend\n  -  {remedy}")


def test_a_reason_for_every_case_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    text = printed(doctor.findings("cpu"), 120)
    assert "refuses all: torch.compile needs a C++ compiler on the CPU: install g++" in text


def test_processes_and_limits_are_told_where_there_are_some() -> None:
    found = doctor.findings("cpu")
    text = printed(found)
    assert "none takes more than 10% of a core now" in text and "this process may take" not in text
    assert "for the time of" not in text
    found["state"]["busiest"] = [{"name": "[make]", "pid": 6, "cores": 0.7}]
    found["device"] |= {"core_quota": 2.5, "memory_limit_bytes": 8000}
    text = printed(found, 120)
    assert "[make] (pid 6): 70% of a core" in text and "this process may take 8.00 kB" in text
    assert "this process may use 8, for the time of 2.5" in text


def test_a_gpu_and_what_it_does_not_tell(gpu: dict[str, Any]) -> None:
    text = printed(doctor.findings("cuda"), 120)
    for line in ("GPU clock 345 MHz", "highest GPU clock 1.98 GHz", "GPU memory clock unknown: NVML says no"):
        assert line in re.sub(" +", " ", text)
    assert "refuses float32: SDPA's flash kernel on CUDA takes float16 and bfloat16, not float32" in text


def test_a_gpu_that_tells_nothing_is_unknown(gpu: dict[str, Any]) -> None:
    gpu.clear()
    gpu["reason"] = "NVML does not start; see whether nvidia-smi runs here"
    assert f"unknown: {gpu['reason']}" in printed(doctor.findings("cuda"), 120)


def test_an_unknown_device_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--device", "tpu"]) == 2
    assert capsys.readouterr() == ("", "vitbench: unknown device 'tpu'; known: cpu, cuda\n")


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_the_command_line_answers_without_torch() -> None:
    heavy = {"torch", "psutil", "rich", "numpy"}
    assert fresh(f"import sys, vitbench.cli; print(*{heavy!r} & set(sys.modules))").stdout == "\n"


def test_without_torch_it_is_said_in_one_line() -> None:
    done = fresh("import sys; sys.modules['torch'] = None; from vitbench.cli import main; sys.exit(main(['doctor']))")
    assert (done.returncode, done.stderr) == (2, "vitbench: torch is not installed: pip install torch\n")


def test_pyproject_names_the_same_packages_and_the_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [re.split("[<>=!~ ]", wanted)[0] for wanted in project["dependencies"]] == list(doctor.PACKAGES)
    assert project["scripts"] == {"vitbench": "vitbench.cli:main"}
