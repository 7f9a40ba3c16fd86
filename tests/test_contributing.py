"""The files that CONTRIBUTING.md shows are dropped into a copy of the project and work with no edit elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from undisturbed import undisturb

from vitbench.run import ROOT


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("project")
    for name in ("vitbench", "analysis", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    shown = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"`([\w/]+\.(?:py|toml))`[^`]*?\n\n```(?:python|toml)\n(.*?)```", shown, flags=re.DOTALL)
    assert [name for name, _ in blocks] == [
        "vitbench/backends/chunked.py",
        "benchmarks/sweeps/registers.toml",
        "analysis/studies/registers.py",
    ]
    for name, text in blocks:
        assert not (copy / name).exists()
        (copy / name).write_text(text)
    return copy


def run(project: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_shown_backend_is_found_and_tested_by_the_conformance_tests(project: Path) -> None:
    words = ["-q", "-p", "no:cacheprovider", "tests/test_conformance.py", "-k", "chunked and float32"]
    assert re.search(r"\d+ passed", run(project, "pytest", *words))


def test_the_shown_sweep_and_study_make_a_report(project: Path) -> None:
    words = ["--sweep", "registers", "--device", "cpu", "--passes", "1", "--run", "run"]
    run(project, "benchmarks", *words)
    undisturb(project / "run")
    run(project, "analysis", "report", "run")
    report = (project / "run" / "report" / "report.md").read_text()
    assert "What do register tokens cost?" in report
    assert re.search(r"9 prefix tokens take [\d.]+x the time of one \(naive\)\.", report)


def test_the_shown_files_are_as_clean_as_the_rest(project: Path) -> None:
    pytest.importorskip("ruff")
    shown = ["vitbench/backends/chunked.py", "analysis/studies/registers.py"]
    run(project, "ruff", "check", *shown)
    run(project, "ruff", "format", "--check", *shown)
