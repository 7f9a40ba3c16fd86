"""The committed run: half of its programs tell the other; windows meet global attention where that was measured."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from shutil import copy

import pytest
from rich.console import Console

from analysis.load import Run, load
from analysis.studies.window import Window, against_global, crossing, crossing_ends
from vitbench.calibrate.calibration import calibrate
from vitbench.calibrate.document import Calibration, constants_of, predicted_in, read
from vitbench.calibrate.page import show
from vitbench.cpu import NAMES

REFERENCE = Path(__file__).resolve().parents[1] / "results" / "reference" / "xeon-2-cores"
MOST = 0.12  # median error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    for name in ("run.json", "environment.json", "peaks.json", "records.jsonl"):
        copy(REFERENCE / name, made)
    calibrate(made, lambda _done, _cases: None)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> Calibration:
    return read(folder)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Run:
    return load(folder)


def test_half_of_the_programs_tell_the_other(found: Calibration) -> None:
    assert found["programs"] > 150
    assert found["halves"]["median"] <= MOST


def test_a_sweep_is_told_by_the_others(found: Calibration) -> None:
    assert found["sweeps"]["median"] <= MOST
    assert len(predicted_in(found)) > 150


def test_constants_are_plausible(found: Calibration) -> None:
    assert [one["name"] for one in found["constants"] if one["at_an_end"]] == []
    attained = json.loads((REFERENCE / "peaks.json").read_bytes())
    constants = constants_of(found)
    assert tuple(constants) == NAMES
    assert 0.4 < constants["macs_per_second"] / attained["macs_per_second"]["float32"] < 1
    assert constants["bytes_per_second"] < attained["bytes_per_second"]


def test_windows_meet_global_attention_where_it_was_measured(loaded: Run) -> None:
    inside = {}
    for row, both in against_global(loaded):
        low, high = crossing_ends(both)
        told = crossing(both, "by_model")
        assert low is not None and high is not None and told is not None
        inside[row["operator"]] = low <= told <= high
    assert inside["window7"] and inside["window7-shift3"]
    assert len(inside) == 10 and sum(inside.values()) >= 9


def test_the_study_shows_the_predicted_crossing_beside_the_measured(loaded: Run, tmp_path: Path) -> None:
    answer = Window().answer(loaded)
    assert answer is not None
    row = answer.table.set_index("operator").loc["window16"]
    assert 700 < float(row["predicted from N"].replace(",", "")) < 1300
    assert " to " in row["its interval"]
    for name in ("run.json", "environment.json", "records.jsonl"):
        copy(REFERENCE / name, tmp_path)
    without = Window().answer(load(tmp_path))
    assert without is not None and "predicted from N" not in without.table


def test_the_page_says_what_it_is_worth(found: Calibration) -> None:
    written = StringIO()
    show(found, Console(width=200, file=written))
    page = written.getvalue()
    assert f"median error {found['halves']['median']:.1%}" in page
    assert all(name in page for name in NAMES)
