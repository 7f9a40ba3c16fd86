"""The study of validation.json: its sentence, table and figure, and its refusal of files that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.load import Run
from analysis.study import Answer, studies
from analysis.validate import lines
from analysis.validation import FILE, OURS, read
from vitbench.refusal import Refusal

NEW, OLD = "pt240-rtx4090-dynamo.csv", "pt113-rtx3090.csv"


def answer(folder: Path) -> Answer | None:
    return studies["validation"].answer(Run(folder, None, {}, {}, {}))  # type: ignore[arg-type]  # it asks for no case


def table(name: str, card: str, torch: int, compiled: bool) -> dict[str, Any]:
    return {"name": name, "card": card, "torch": torch, "compiled": compiled}


def score(table: str, left_out: str, median: float | None, method: str = OURS) -> dict[str, Any]:
    numbers = None if median is None else {"rows": 40, "median": median, "p90": 3 * median, "rank": 0.98765}
    return {"table": table, "method": method, "left_out": left_out, "score": numbers}


def row(table: str, family: str, error: float, attention: bool = True) -> dict[str, Any]:
    predicted = {"family": 0.1 * (1 + error), "card": None}
    return {
        "table": table, "model": "any", "image": 224, "batch": 64, "family": family, "attention": attention,
        "seconds": 0.1, "predicted": predicted,
    }  # fmt: skip


MADE: dict[str, Any] = {
    "schema": 1,
    "tables": [table(NEW, "rtx4090", 240, True), table(OLD, "rtx3090", 113, False)],
    "constants": [],
    "scores": [
        score(NEW, "family", 0.05),
        score(NEW, "card", None),
        score(OLD, "family", 0.06),
        score(OLD, "card", 0.08),
        score(OLD, "family", 0.3, "FLOPs over peak"),
    ],
    "rows": [
        *(row(name, "vit", error) for name in (NEW, OLD) for error in (-0.3, 0.01, 0.02)),
        *(row(NEW, "volo", error) for error in (0.4, 0.5, 0.9)),
        *(row(OLD, "volo", error) for error in (-0.3, -0.2, -0.1)),
        *(row(NEW, "few", 2.0) for _ in range(2)),
        *(row(NEW, "resnet", 5.0, attention=False) for _ in range(3)),
    ],
}


def put(folder: Path, content: Any) -> Path:
    (folder / FILE).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_the_sentence_has_the_figures_of_the_file(tmp_path: Path) -> None:
    found = answer(put(tmp_path, MADE))
    assert found is not None
    assert found.sentence == (
        "RTX4090, torch 2.4.0, compiled: median error 5.0%, 90th percentile 15.0% over 40 models with attention, their "
        "family left out. RTX3090, torch 1.13, eager: median error 6.0%, 90th percentile 18.0% over 40 models with "
        "attention, their family left out; 8.0% and 24.0% from the other card alone. It fails, on every table, on volo "
        "(-20% to +50%)."
    )


def test_the_table_has_every_score_that_there_is(tmp_path: Path) -> None:
    found = answer(put(tmp_path, MADE))
    assert found is not None
    assert list(found.table["median error"]) == ["5.0%", "6.0%", "8.0%", "30.0%"]
    assert list(found.table["method"]) == [OURS] * 3 + ["FLOPs over peak"]
    assert set(found.table["rank correlation"]) == {"0.9877"} and not found.table.isna().any().any()


def test_the_figure_has_a_panel_a_table_and_one_of_families(tmp_path: Path) -> None:
    found = answer(put(tmp_path, MADE))
    assert found is not None
    *scatters, families = found.figure.axes
    assert [panel.get_title() for panel in scatters] == ["RTX4090, torch 2.4.0, compiled", "RTX3090, torch 1.13, eager"]
    assert [label.get_text() for label in families.get_yticklabels()] == ["vit", "volo"]
    assert all(panel.get_xlabel() for panel in found.figure.axes)
    found.figure.canvas.draw()
    measured, of_resnet = scatters[0].lines[1].get_xdata(), scatters[0].lines[0].get_ydata()
    assert measured == pytest.approx([100 / 64] * 8) and of_resnet == pytest.approx([600 / 64] * 3)


def test_a_table_of_which_no_family_could_be_left_out_is_said_so(tmp_path: Path) -> None:
    """So it is where all its models are of one."""
    rows = [row(NEW, "vit", 0) for _ in range(3)]
    for one in rows:
        one["predicted"] = {"family": None, "card": None}
    alike = score(NEW, "family", 0.3, "FLOPs over peak")
    alike["score"]["rank"] = None
    made = MADE | {"tables": MADE["tables"][:1], "scores": [score(NEW, "family", None), alike], "rows": rows}
    found = answer(put(tmp_path, made))
    assert found is not None
    found.figure.canvas.draw()
    assert "its one family cannot be left out" in found.sentence
    assert list(found.table["rank correlation"]) == ["-"]


def test_the_command_prints_a_line_a_score() -> None:
    head, first, none, *_ = lines(MADE)
    assert head.split() == ["table", "method", "left", "out", "rows", "median", "90", "%", "rank"]
    assert first.split() == [NEW, *OURS.split(), "family", "40", "5.0%", "15.0%", "0.9877"]
    assert none.split() == [NEW, *OURS.split(), "card", "-"]


def test_there_is_no_answer_without_the_file(tmp_path: Path) -> None:
    assert answer(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ({**MADE, "schema": 9}, "has schema 9; expected 1"),
        ({name: some for name, some in MADE.items() if name != "rows"}, "damaged"),
        ({**MADE, "scores": [3]}, "damaged"),
    ],
    ids=range(5),
)
def test_what_is_no_such_file_is_refused(content: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=rf"{said}.*make validate"):
        read(put(tmp_path, content) / FILE)
