"""The file of evidence: what was written is read again, whatever ended the writer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.record import FAULTS, SCHEMA, STATES, Record, append_line, read_lines
from vitbench.refusal import Refusal
from vitbench.shape import Shape

CASE = Case(Global(), Shape(1, 2, 2, 8, 1), "naive")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return list(read_lines(path))


def test_what_was_appended_is_read(path: Path) -> None:
    written = [{"schema": SCHEMA, "id": name, "seconds": [0.1, 2e-05]} for name in ("one", "two", "drei \u00e4\n")]
    for line in written:
        append_line(path, line)
    assert lines(path) == written
    assert path.read_bytes().count(b"\n") == 3


def test_no_file_holds_no_lines(path: Path) -> None:
    assert lines(path) == []


@pytest.mark.parametrize("torn", [b"{", b'{"id": "th', b'{"id": "three"}', b"\xc3", b"x" * 100_000])
def test_a_torn_last_line_is_left_out_and_cut_on_appending(path: Path, torn: bytes) -> None:
    append_line(path, {"id": "one"})
    append_line(path, {"id": "two"})
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert [line["id"] for line in read_lines(path)] == ["one", "two"]
    assert path.read_bytes() == whole + torn  # reading changes nothing
    append_line(path, {"id": "three"})
    assert [line["id"] for line in read_lines(path)] == ["one", "two", "three"]
    assert path.read_bytes() == whole + b'{"id": "three"}\n'


def test_a_file_of_a_torn_line_alone_begins_anew(path: Path) -> None:
    path.write_bytes(b'{"id": "on')
    assert lines(path) == []
    append_line(path, {"id": "one"})
    assert lines(path) == [{"id": "one"}]


def test_a_newer_schema_is_refused(path: Path) -> None:
    append_line(path, {"schema": SCHEMA, "id": "one"})
    append_line(path, {"schema": SCHEMA + 1, "id": "two"})
    with pytest.raises(Refusal, match=rf"records.jsonl:2 has schema {SCHEMA + 1}; this vitbench reads up to {SCHEMA}"):
        lines(path)


@pytest.mark.parametrize("damaged", [b"{half}\n", b"\n", b"[1]\n", b"7\n", b'"text"\n', b"null\n"])
def test_a_damaged_line_within_is_refused_by_its_number(path: Path, damaged: bytes) -> None:
    append_line(path, {"id": "one"})
    with path.open("ab") as file:
        file.write(damaged)
    append_line(path, {"id": "three"})
    with pytest.raises(Refusal, match=r"records.jsonl:2 "):
        lines(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_is_refused_and_leaves_the_file_as_it_was(path: Path, value: float) -> None:
    append_line(path, {"id": "one"})
    with pytest.raises(ValueError, match="Out of range"):
        append_line(path, {"id": "two", "seconds": [value]})
    assert lines(path) == [{"id": "one"}]


def test_a_record_writes_its_fields_under_their_names() -> None:
    line = Record(CASE.id, 2, CASE.to_dict(), seconds=[0.5], environment="abc").to_dict()
    assert line["schema"] == SCHEMA
    assert (line["id"], line["pass"], line["case"]) == (CASE.id, 2, CASE.to_dict())
    assert (line["state"], line["reason"]) == ("ok", None)
    assert "pass_" not in line
    assert json.loads(json.dumps(line, allow_nan=False)) == line


def test_what_was_not_measured_is_null() -> None:
    line = Record(CASE.id, 0, CASE.to_dict()).to_dict()
    for name in ("seconds", "peak_bytes", "energy_joules", "error", "counts", "ran", "first_call_seconds"):
        assert line[name] is None, name


def test_faults_are_states() -> None:
    assert set(FAULTS) < set(STATES)
