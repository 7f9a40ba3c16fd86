"""What the wall time went into adds up to the wall time."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.spending import Spending
from vitbench.case import Case
from vitbench.folder import book
from vitbench.operators.global_ import Global
from vitbench.record import Record, append_line
from vitbench.shape import Shape

CASE = Case(Global(), Shape(1, 2, 2, 8, 2), "naive")


def keep(folder: Path, **spent: float) -> None:
    record = Record(CASE.id, 0, CASE.to_dict(), seconds=[1.0], environment="here", spent=spent)
    append_line(folder / "records.jsonl", record.to_dict())


def test_the_stages_add_up_to_the_wall_time(tmp_path: Path) -> None:
    keep(tmp_path, start=2.0, samples=3.0, warm_up=1.0, check=1.0)
    keep(tmp_path, samples=2.0, canary=0.5)
    book(tmp_path, "peaks", 1.0)
    book(tmp_path, "passes", 9.0)
    book(tmp_path, "passes", 2.0)
    found = Spending.of(tmp_path)
    assert found.total == 12.0
    assert sum(found.stages.values()) == pytest.approx(found.total)
    assert found.stages["other"] == pytest.approx(1.5)
    assert found.share == 6.0 / 12.0
    assert found.sentence.startswith("50% of 12 s were spent in measured or warm-up calls: samples 41.7%, ")


def test_a_killed_supervisor_that_booked_nothing_does_not_make_more_than_all(tmp_path: Path) -> None:
    keep(tmp_path, samples=4.0)
    book(tmp_path, "peaks", 1.0)
    found = Spending.of(tmp_path)
    assert (found.total, found.share) == (5.0, 0.8)


def test_a_run_that_booked_nothing_says_so(tmp_path: Path) -> None:
    found = Spending.of(tmp_path)
    assert found.share is None
    assert "not known" in found.sentence
