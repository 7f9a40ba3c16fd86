"""The study of counters: what it says of audits that are made up, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import benchmarks.answers
import benchmarks.counters
from analysis.counters import FILE, read
from analysis.load import Run
from analysis.study import studies
from vitbench.refusal import Refusal


def row(counter: str, percent: float | None, **given: Any) -> dict[str, Any]:
    said = [{"words": "it passes over fused attention"}] if percent else []
    reason = "it crashes" if percent is None else None
    base = {"counter": counter, "place": "device", "percent": percent, "reason": reason, "reasons": said}
    return {**base, "variations": [], "seconds": 0.5, "peak_bytes": 10**7, **given}


def audit(source: str, *rows: dict[str, Any]) -> dict[str, Any]:
    exact = row("exact", 0.0, place="meta")
    return {"source": source, "exact": 1000, "rows": [exact, *rows]}


CHANGED = [{"name": "grad", "changed": True}, {"name": "train", "changed": False}]
AUDITS = [
    audit("timm:a_patch16_224", row("right", 0.0), row("low", -4.0, variations=CHANGED), row("none", None)),
    audit("timm:b", row("right", 0.0), row("low", -31.5), row("none", 0.4)),
]
CONTENT = {"schema": 1, "environment": {"cpu": "a processor"}, "versions": {"torch": "2"}, "audits": AUDITS}


def answered(folder: Path, content: Any) -> Any:
    (folder / FILE).write_text(json.dumps(content))
    return studies["counters"].answer(Run(folder, pd.DataFrame(), {}, {}, {}))


def test_it_says_who_is_always_right_and_who_is_worst(tmp_path: Path) -> None:
    answer = answered(tmp_path, CONTENT)
    assert "of 3 counters right, CPU tensors is always right." in answer.sentence
    assert "The other 2 are wrong in 3 of their 3 counts, at worst by -31.5 % (low, CPU tensors; timm:b)." in (
        answer.sentence
    )
    table = answer.table.set_index("counter")
    assert list(table.index) == ["vitbench count", "right, CPU tensors", "none, CPU tensors", "low, CPU tensors"]
    assert list(table.loc["none, CPU tensors", ["timm:a", "timm:b"]]) == ["-", "+0.40 %"]
    assert table.loc["low, CPU tensors", "answer changes with"] == "grad"
    assert table.loc["low, CPU tensors", "why"] == "it passes over fused attention"
    assert len(answer.figure.axes) == 3


def test_without_its_file_it_does_not_answer(tmp_path: Path) -> None:
    assert studies["counters"].answer(Run(tmp_path, pd.DataFrame(), {}, {}, {})) is None


@pytest.mark.parametrize("content", [[], {"schema": 1}, {**CONTENT, "audits": [{}]}, {**CONTENT, "schema": 2}])
def test_a_damaged_file_is_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(Refusal, match="write it again"):
        read(tmp_path / FILE)


def test_the_script_writes_what_the_study_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.counters, "audit", lambda source, said: audit(source, row("low", -4.0)))
    monkeypatch.setattr(benchmarks.counters, "read_asked", lambda _: None)
    assert benchmarks.counters.main(["--run", str(tmp_path), "--source", "timm:a"]) == 0
    assert [(one.counter, one.percent) for one in read(tmp_path / FILE).counts] == [
        ("vitbench count", 0.0),
        ("low, CPU tensors", -4.0),
    ]


def test_the_whole_process_that_answers_at_once_is_right() -> None:
    assert benchmarks.answers.ask_built_in()["macs"] == 17_563_828_224
