"""From a real smoke run to its report: every study answers, every figure is there, the HTML needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from undisturbed import undisturb

from analysis.load import COLUMNS, load
from analysis.report import write_report
from analysis.study import studies
from vitbench.refusal import Refusal
from vitbench.run import ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "smoke"
    words = ["--profile", "smoke", "--device", "cpu", "--passes", "1", "--run", str(path)]
    subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=ROOT, check=True, capture_output=True)
    undisturb(path)
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def change(path: Path, id_part: str, **values: object) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [line | values if id_part in line["id"] else line for line in lines]
    assert changed != lines
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_every_study_answers_a_smoke_run(folder: Path) -> None:
    run = load(folder)
    for study in (study for study in studies if study.of_records):
        answer = study.answer(run)
        assert answer is not None, study.name
        assert answer.sentence.endswith(".") and "nan" not in answer.sentence.lower()
        assert len(answer.table) and not answer.table.isna().any().any(), study.name
        for panel in answer.figure.axes:
            assert panel.get_xlabel() or panel.get_xticklabels(), study.name


def test_every_study_declines_a_run_without_its_cases(folder: Path) -> None:
    run = load(folder)
    nothing = replace(run, cases=run.cases.iloc[:0])
    assert [study.name for study in studies if study.of_records and study.answer(nothing) is not None] == []


def test_the_report_is_whole(folder: Path) -> None:
    sections = write_report(load(folder))
    page = (folder / "report.html").read_text()
    text = (folder / "report" / "report.md").read_text()
    for study in studies:
        assert study.question in text
        picture = folder / "report" / f"{study.name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG") if study.of_records else True
    pictures = len(list((folder / "report").glob("*.png")))
    assert page.count("data:image/png;base64,") == pictures >= sum(study.of_records for study in studies)
    assert not re.search(r"(src|href)=\"(?!data:|#)", page), "the page reaches outside itself"
    assert all(section.sentence in text for section in sections)
    assert all(column in text for column in COLUMNS)


def test_measured_peaks_of_a_real_run_equal_the_closed_form(folder: Path) -> None:
    cases = load(folder).cases
    known = cases[cases["peak_bytes"].notna() & cases["closed_peak_bytes"].notna()]
    assert len(known) >= 20
    assert (known["peak_bytes"].astype(float) / known["closed_peak_bytes"].astype(float) - 1).abs().max() <= 0.001


def test_a_wrong_result_has_no_time(copy: Path) -> None:
    change(copy / "records.jsonl", "global.naive.b2.", state="wrong_result", reason="off by 3")
    case = load(copy).cases.query("operator == 'global' and backend == 'naive' and batch == 2").iloc[0]
    assert case["state"] == "wrong_result" and case["reason"] == "off by 3"
    assert case[["seconds", "low", "high", "images_per_second"]].isna().all()


def test_records_of_unlike_machines_are_not_merged(copy: Path) -> None:
    with (copy / "environment.json").open("a") as file:
        file.write('{"id": "elsewhere"}\n')
    with pytest.raises(Refusal, match="mixes 2 environments"):
        load(copy)


def test_six_passes_settle_and_fewer_do_not(copy: Path) -> None:
    records = copy / "records.jsonl"
    once = [json.loads(line) for line in records.read_text().splitlines()]
    more = [line | {"pass": pass_} for pass_ in (1, 2, 3, 4, 5) for line in once if "sdpa" in line["id"]]
    with records.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in more)
    cases = load(copy).cases
    assert cases.query("backend == 'sdpa'")["settled"].all()
    assert not cases.query("backend == 'naive'")["settled"].any()


def test_the_column_dictionary_is_true() -> None:
    text = (ROOT / "results" / "README.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, flags=re.MULTILINE))
    assert listed == COLUMNS
