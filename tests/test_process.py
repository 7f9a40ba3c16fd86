"""The worker's process, whatever else is installed beside it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import LIMIT

from vitbench import process as module
from vitbench.process import begun, end, start, watch

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
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
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --deselect benchmarks/project\n")
    (tmp_path / "conftest.py").write_text(BACKWARDS)
    root = tmp_path / "project"
    (root / "benchmarks").mkdir(parents=True)
    (root / "benchmarks" / "conftest.py").write_text(CONFTEST)
    (root / "benchmarks" / "test_cases.py").write_text(CASES)
    with (tmp_path / "log").open("wb") as log:
        process = start(tmp_path / "todo", log, log.fileno(), root)
    try:
        assert process.wait(LIMIT) == 0, (tmp_path / "log").read_text()
    finally:
        end(process)
    assert (root / "ran").read_text() == "012"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEPS, start_new_session=True)
    yield process
    end(process)


def test_the_limit_of_a_case_is_not_one_of_the_start(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    todo, looks = tmp_path / "todo", 3
    seen = watch(sleeper, tmp_path / "records", todo, module.POLL / 2, None)
    assert [*itertools.islice(seen, looks)] == [set()] * looks
    begun(todo).touch()
    with pytest.raises(TimeoutError, match="no result within"):
        list(seen)


def test_a_process_that_comes_to_no_case_is_given_up(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_LIMIT", 0.1)
    with pytest.raises(TimeoutError, match=r"came to no case within 0\.1 seconds"):
        list(watch(sleeper, tmp_path / "records", tmp_path / "todo", LIMIT, None))
