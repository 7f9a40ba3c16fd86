"""The table in README.md says what the fault tests declare, and is written from tests that passed alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_faults
from fault_table import BEGIN, BETWEEN, END, HEAD, FaultTable, declared, table

from vitbench.run import ROOT

OLD = f"before\n{BEGIN}old\n{END}after\n"
MARKED = """
import pytest

@pytest.mark.fault("rain", "it gets wet", 0)
def test_rain(record_property):
    record_property("records lost", 3)

@pytest.mark.fault("snow", "it gets cold", 0)
def test_snow(record_property):
    {snow}
    record_property("records lost", 0)
"""


def test_readme_shows_what_the_tests_declare() -> None:
    shown = BETWEEN.search((ROOT / "README.md").read_text())
    assert shown is not None
    assert shown.group() == table(declared(test_faults)), "run `make faults`"


@pytest.fixture(autouse=True)
def nothing_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sessions within this one take neither plugins nor options of whoever runs it."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def write(tmp_path: Path, snow: str, *words: str) -> tuple[int, str]:
    """Exit code of a session over the tests above, and what it made of OLD."""
    (tmp_path / f"test_{tmp_path.name}.py").write_text(MARKED.format(snow=snow))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = fault\n")
    path = tmp_path / "README.md"
    path.write_text(OLD)
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tmp_path), *words]
    return int(pytest.main(options, plugins=[FaultTable(path)])), path.read_text()


def test_the_table_is_written_from_what_the_tests_measured(tmp_path: Path) -> None:
    rows = "| rain | it gets wet | 3 |\n| snow | it gets cold | 0 |\n"
    assert write(tmp_path, "pass") == (0, f"before\n{BEGIN}{HEAD}{rows}{END}after\n")


@pytest.mark.parametrize("snow", ["assert False", "pytest.skip('no snow here')", "return"])
def test_it_is_not_written_unless_each_fault_passed(tmp_path: Path, snow: str) -> None:
    assert write(tmp_path, snow) == (1, OLD)


def test_it_is_not_written_from_some_of_the_faults(tmp_path: Path) -> None:
    assert write(tmp_path, "pass", "-k", "rain") == (1, OLD)
