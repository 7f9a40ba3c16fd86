"""A run's folder that was damaged is refused in a sentence, or passed over where another was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitbench.case import Case
from vitbench.evidence import Effort
from vitbench.folder import agree, newest, read_asked, read_environments, read_peaks, read_stages, recorded, wanted
from vitbench.operators.global_ import Global
from vitbench.plan import Plan
from vitbench.record import Record, append_line
from vitbench.refusal import Refusal
from vitbench.shape import Shape

CASE = Case(Global(), Shape(1, 2, 2, 8, 2), "naive")
PLAN = Plan("smoke", ("batch",), "cpu", "warm", 0.1, 0, (CASE,), (("batch",),))
EFFORT = Effort(1, 1)
HERE = {"id": "here", "cpu": "this one", "commit": "a"}


def filled(folder: Path) -> Path:
    folder.mkdir(parents=True)
    agree(folder, PLAN, EFFORT, HERE)
    record = Record(CASE.id, 0, CASE.to_dict(), seconds=[1.0], environment="here")
    append_line(folder / "records.jsonl", record.to_dict())
    return folder


def test_a_folder_once_agreed_on_is_agreed_on_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    agree(folder, PLAN, EFFORT, {**HERE, "commit": "b"})
    assert recorded(folder) == {(CASE.id, 0)}
    assert wanted(folder, PLAN, EFFORT) == {}
    assert wanted(folder, PLAN, Effort(2, 2)) == {CASE: ({0}, 1)}
    assert read_environments(folder) == {"here": HERE}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b"null", b"\xff", b'{"plan": 3, "started": 1}'])
def test_a_damaged_run_json_is_refused_and_passed_over(tmp_path: Path, text: bytes) -> None:
    whole, damaged = filled(tmp_path / "whole"), filled(tmp_path / "damaged")
    (damaged / "run.json").write_bytes(text)
    with pytest.raises(Refusal, match=r"run\.json is damaged"):
        read_asked(damaged)
    assert newest(tmp_path) == whole


@pytest.mark.parametrize("text", ["", '{"id": "elsewhere"}\n'])
def test_records_of_an_environment_that_is_not_described_are_refused(tmp_path: Path, text: str) -> None:
    folder = filled(tmp_path / "run")
    (folder / "environment.json").write_text(text)
    with pytest.raises(Refusal, match="does not describe here, which records name"):
        agree(folder, PLAN, EFFORT, HERE)


def test_another_environment_is_refused_by_what_differs(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    with pytest.raises(Refusal, match=r"made in another environment \(cpu differ\)"):
        agree(folder, PLAN, EFFORT, {"id": "there", "cpu": "another", "commit": "a"})


@pytest.mark.parametrize("line", ["{}", '{"id": "x", "pass": 0}', '{"schema": "x"}', '{"schema": null}'])
def test_a_line_that_is_no_record_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    folder = filled(tmp_path / "run")
    with (folder / "records.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(Refusal, match=r"records\.jsonl:2"):
        recorded(folder)


@pytest.mark.parametrize("change", [{"seconds": None}, {"seconds": []}, {"seconds": [0.0]}, {"canary": [0, 1]}])
def test_a_record_without_the_times_that_it_must_have_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    folder = filled(tmp_path / "run")
    record = Record(CASE.id, 1, CASE.to_dict(), seconds=[1.0], environment="here").to_dict()
    append_line(folder / "records.jsonl", {**record, **change})
    with pytest.raises(Refusal, match="expected seconds above 0"):
        recorded(folder)


@pytest.mark.parametrize("name", ["peaks.json", "stages.jsonl"])
@pytest.mark.parametrize(
    "text", ["", "{}", '{"macs_per_second": {"x": "y"}, "bytes_per_second": 1}', '{"stage": 1, "seconds": "x"}']
)
def test_damaged_side_files_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text + "\n" * bool(text))
    read = {"peaks.json": read_peaks, "stages.jsonl": read_stages}[name]
    if name == "stages.jsonl" and not text:
        assert read(tmp_path) == {}
        return
    with pytest.raises(Refusal):
        read(tmp_path)
