"""The study of accuracy.json: its sentence, and its refusal of files that cannot be."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_accuracy import answer

from benchmarks import accuracy
from vitbench.refusal import Refusal
from vitbench.run import ROOT


def row(name: str, positions: str, accuracies: list[float], **given: Any) -> dict[str, Any]:
    counts = {"patch": 2, "tokens": 16, "parameters": 10, "macs": 2000, "training_macs": 6000, "batch": 32}
    # The rounds' medians are 3, 4 and 5 ms.
    return {"name": name, "kind": "vit", "positions": positions, "accuracies": accuracies} | counts | {
        "seconds": [[0.004, 0.004, 0.009], [0.003, 0.003, 0.001], [0.005]],
        **given,
    }  # fmt: skip


MADE = {
    "schema": 1,
    "data": {"test": 540},
    "training": {"seeds": [0, 1]},
    "environment": {"cpu": "a processor"},
    "rows": [
        row("placed", "learned", [0.9, 0.8]),
        row("bare", "none", [0.5, 0.6]),
        row("coarse", "learned", [0.92, 0.98], patch=4, tokens=4, macs=500),
        row("coarse and bare", "none", [0.9, 0.95], patch=4, tokens=4, macs=500),
        row("windows", "relative", [0.9, 0.9], kind="swin", macs=1000, seconds=[[0.008], [0.006], [0.010]]),
    ],
}


def put(folder: Path, content: Any) -> Path:
    (folder / accuracy.FILE).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_the_sentence_has_the_figures_of_the_file(tmp_path: Path) -> None:
    found = answer(put(tmp_path, MADE))
    assert found is not None
    best, lost, beside = found.sentence.split(". ")
    assert "coarse is the best: it names 95.0% (92.0% to 98.0%) of 540 held-out images right" in best
    assert "500 MAC an image and 4.00 ms (" in best and best.endswith("a training step of 32 images (a processor)")
    assert lost == (
        "Without positions vit loses, in percentage points: "
        "2.5 (2.0 to 3.0) with patches of 4 (4 tokens, from 95.0% to 92.5%); "
        "30.0 (20.0 to 40.0) with patches of 2 (16 tokens, from 85.0% to 55.0%)"
    )
    assert beside == (
        "windows on as many tokens as placed (16) comes 5.0 (0.0 to 10.0) points above it, "
        "with 0.500x its MACs and 2.00x its seconds."
    )
    assert list(found.table["accuracy"])[:2] == ["95.0% (92.0% to 98.0%)", "92.5% (90.0% to 95.0%)"]
    assert not found.table.isna().any().any()


def test_a_drop_that_not_every_seed_shows_is_called_so(tmp_path: Path) -> None:
    found = answer(put(tmp_path, changed("rows", 1, "accuracies", to=[0.5, 0.8])))
    assert found is not None
    assert (
        "20.0 (0.0 to 40.0) with patches of 2 (16 tokens, from 85.0% to 65.0%, not with every seed)" in found.sentence
    )
    assert found.sentence.count("not with every seed") == 1


def test_there_is_no_answer_without_the_file(tmp_path: Path) -> None:
    assert answer(tmp_path) is None


def changed(*path: Any, to: Any) -> dict[str, Any]:
    content: Any = copy.deepcopy(MADE)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return content


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        changed("rows", to=[]),
        changed("rows", 0, to={}),
        changed("rows", 0, "accuracies", to=[0.9]),
        changed("rows", 0, "accuracies", to=[0.9, 90]),
        changed("rows", 0, "seconds", to=[]),
        changed("rows", 0, "seconds", to=[[0.1], [-0.1]]),
        changed("rows", 0, "seconds", to=[["fast"]]),
        changed("rows", 0, "macs", to=0),
        changed("environment", to=None),
    ],
    ids=str,
)
def test_a_damaged_file_is_refused_by_name(content: Any, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"accuracy\.json is damaged"):
        answer(put(tmp_path, content))


def test_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"accuracy\.json has schema 2; expected 1: write it again"):
        answer(put(tmp_path, changed("schema", to=2)))


def test_the_study_imports_no_torch(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from analysis.load import Run
from analysis.study import studies
assert studies["accuracy"].answer(Run(Path({str(put(tmp_path, MADE))!r}), None, {{}}, {{}}, {{}}))
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
