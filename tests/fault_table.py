"""The table of faults in README.md, written by `pytest --fault-table README.md` from fault tests that passed just then.

A fault test has the mark below and records the property "records lost".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

HEAD = "| fault | what happens | records lost |\n|---|---|---|\n"
BEGIN, END = "<!-- faults -->\n", "<!-- end of faults -->\n"
BETWEEN = re.compile(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", flags=re.DOTALL)


class Row(NamedTuple):
    fault: str
    happens: str
    lost: int


def fault(story: Callable[..., Any], name: str, what: str, happens: str, lost: int = 0) -> pytest.MarkDecorator:
    """story: does the fault of that name. The rest is its row."""
    return pytest.mark.fault(what, happens, lost, story=story, name=name)


def table(rows: Iterable[Row]) -> str:
    return HEAD + "".join(f"| {row.fault} | {row.happens} | {row.lost} |\n" for row in rows)


def declared(module: ModuleType) -> Iterator[Row]:
    """The rows of a module's tests, in order."""
    for test in vars(module).values():
        marks = getattr(test, "pytestmark", []) if callable(test) else []
        yield from (Row(*mark.args) for mark in marks if mark.name == "fault")


class FaultTable:
    """The plug-in behind --fault-table: writes at the end, or says why not and fails the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tests: dict[str, Row] = {}  # by node id, in order, the deselected ones too
        self.lost: dict[str, int] = {}  # of those that passed

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        marks = {item.nodeid: item.get_closest_marker("fault") for item in items}
        self.tests = {test: Row(*mark.args) for test, mark in marks.items() if mark}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: dict[str, Any] = dict(report.user_properties)
        if report.when == "call" and report.passed and "records lost" in properties:
            self.lost[report.nodeid] = properties["records lost"]
        elif not report.passed:
            self.lost.pop(report.nodeid, None)

    def refused(self) -> str | None:
        """Why the table must not be written."""
        without = [test for test in self.tests if test not in self.lost]
        if not self.tests:
            return "no fault was tested"
        return f"{len(without)} of {len(self.tests)} faults did not pass, {without[0]} first" if without else None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        text = self.path.read_text()
        reason = self.refused() or (None if BETWEEN.search(text) else f"it lacks {BEGIN.strip()} and {END.strip()}")
        if reason:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            print(f"\n{self.path} is left as it is: {reason}")
            return
        rows = [row._replace(lost=self.lost[test]) for test, row in self.tests.items()]
        self.path.write_text(BETWEEN.sub(lambda _: table(rows), text))
