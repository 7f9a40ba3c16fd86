"""The worker's process, whatever else is installed beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitbench.process import start

CONFTEST = 'def pytest_addoption(parser):\n    parser.addoption("--cases")\n'
CASES = """import pathlib, pytest
@pytest.mark.parametrize("n", range(3))
def test_case(n, benchmark):
    with pathlib.Path("ran").open("a") as file:
        file.write(str(n))
"""
BACKWARDS = "def pytest_collection_modifyitems(items):\n    items.reverse()\n"


@pytest.fixture
def backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin of pytest that takes tests in another order, as plugins do that shuffle or retry."""
    about = tmp_path / "backwards-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: backwards\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pytest11]\nbackwards = backwards\n")
    (tmp_path / "backwards.py").write_text(BACKWARDS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_no_other_plugin_and_no_option_of_the_user_reaches_the_worker(
    backwards: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--maxfail=1 -k 'not 0'")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "benchmarks" / "test_cases.py").write_text(CASES)
    with (tmp_path / "log").open("wb") as log:
        process = start(tmp_path / "todo", log, log.fileno(), tmp_path)
    assert process.wait(60) == 0, (tmp_path / "log").read_text()
    assert (tmp_path / "ran").read_text() == "012"
