"""Faster, slower, same or inconclusive, and nothing that the evidence does not hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import analysis.__main__
from analysis.compare import compare_backends, compare_runs
from analysis.load import load
from analysis.report import write_report
from analysis.verdict import verdict
from vitbench.case import Case
from vitbench.evidence import Effort
from vitbench.folder import agree
from vitbench.operators.global_ import Global
from vitbench.plan import Plan
from vitbench.record import Record, append_line
from vitbench.refusal import Refusal
from vitbench.run import ROOT
from vitbench.shape import Shape

HERE = {"id": "here", "device": "cpu", "device_name": "this", "memory_bytes": 2**33, "packages": {"torch": "1"}}
CASES = [
    Case(Global(), Shape(1, side, side, 8, 2), b, copy=c) for side in (2, 3) for b in ("naive", "sdpa") for c in (0, 1)
]
Factor = Callable[[Case], float]


def write(
    folder: Path,
    factor: Factor = lambda case: 1.0,
    *,
    seed: int = 0,
    noise: float = 0.002,
    here: Mapping[str, Any] = HERE,
) -> Path:
    """A run of six passes, each with its own luck of 8 %, which its canary shows."""
    folder.mkdir()
    plan = Plan("smoke", ("x",), "cpu", "warm", 0.1, 0, tuple(CASES), tuple(("x",) for _ in CASES))
    agree(folder, plan, Effort(6, 6), here)
    draw = np.random.default_rng(seed)
    for pass_ in range(6):
        luck = float(np.exp(draw.normal(0, 0.08)))
        for case in CASES:
            seconds = [factor(case) * luck * float(np.exp(draw.normal(0, noise))) for _ in range(5)]
            record = Record(case.id, pass_, case.to_dict(), seconds=seconds, environment=str(here["id"]))
            record.canary = [luck, luck * float(np.exp(draw.normal(0, noise)))]
            append_line(folder / "records.jsonl", record.to_dict())
    return folder


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        ((1.0, 0.99, 1.01), "same"),
        ((1.015, 1.011, 1.019), "same"),  # surely different, surely by less than the margin
        ((1.05, 1.04, 1.06), "slower"),
        ((0.95, 0.94, 0.96), "faster"),
        ((1.05, 0.99, 1.2), "inconclusive"),
        ((1.015, 1.005, 1.03), "inconclusive"),  # may be more than the margin, or less
        ((1.5, np.nan, np.nan), "inconclusive"),
        ((np.nan, np.nan, np.nan), "inconclusive"),
    ],
)
def test_the_verdict_follows_from_interval_and_margin(interval: tuple[float, float, float], word: str) -> None:
    found = verdict(interval, margin=0.02, floor=0.01)
    assert found.word == word
    assert found.reason


def test_a_difference_no_larger_than_that_of_identical_cases_is_none() -> None:
    assert verdict((1.05, 1.04, 1.06), margin=0.02, floor=0.06).word == "inconclusive"
    assert verdict((1.0, 0.99, 1.01), margin=0.02, floor=0.06).word == "inconclusive", "nor is anything the same"
    assert verdict((1.0, 0.99, 1.01), margin=0.02, floor=None).word == "inconclusive"


def test_identical_runs_have_nothing_that_is_faster_or_slower(tmp_path: Path) -> None:
    found = compare_runs(load(write(tmp_path / "a", seed=1)), load(write(tmp_path / "b", seed=2)))
    assert (found.count("slower"), found.count("faster")) == (0, 0)
    assert len(found.lines) == len(CASES)


def test_a_run_on_a_slowed_machine_is_not_slower(tmp_path: Path) -> None:
    """All times and the canary are 1.5 times as long."""
    one = write(tmp_path / "a")
    slowed = write(tmp_path / "b", lambda case: 1.5)
    path = slowed / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "canary": [1.5 * c for c in line["canary"]]}) + "\n" for line in lines))
    found = compare_runs(load(one), load(slowed))
    assert found.count("slower") == 0
    assert "by times that are divided by the canary's" in found.lines[0].verdict.reason


def test_what_is_slower_in_the_second_run_is_found_and_ends_the_command_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "a")
    other = write(tmp_path / "b", lambda case: 1.4 if case.backend == "sdpa" else 1.0, seed=3)
    assert analysis.__main__.main(["compare", str(one), str(other), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert {line["case"] for line in told["cases"] if line["verdict"] == "slower"} == {
        case.id for case in CASES if case.backend == "sdpa"
    }
    assert (other / "b-against-a" / "report.html").stat().st_size > 10_000
    assert analysis.__main__.main(["compare", str(other), str(one)]) == 0, "faster is no fault"


def test_two_backends_of_one_run_are_compared_pass_by_pass(tmp_path: Path) -> None:
    run = load(write(tmp_path / "a", lambda case: 1.05 if case.backend == "sdpa" else 1.0))
    assert compare_backends(run, "naive", "sdpa").count("slower") == 4
    assert compare_backends(run, "sdpa", "naive").count("faster") == 4
    assert compare_backends(run, "naive", "naive").count("same") == 4
    with pytest.raises(Refusal, match="holds no backend 'x'; known: naive, sdpa"):
        compare_backends(run, "naive", "x")


def test_a_margin_below_the_noise_floor_is_refused(tmp_path: Path) -> None:
    run = load(write(tmp_path / "a", lambda case: 1.03 if case.copy else 1.0))
    with pytest.raises(Refusal, match=r"margin 1.00% is below the noise floor 3.\d+%"):
        compare_backends(run, "naive", "sdpa", margin=0.01)
    assert compare_backends(run, "naive", "sdpa", margin=0.04).margin == 0.04


def test_unlike_machines_are_refused_unless_asked_for_and_then_said(tmp_path: Path) -> None:
    one = load(write(tmp_path / "a"))
    other = load(write(tmp_path / "b", here={**HERE, "id": "there", "device_name": "that", "packages": {"torch": "2"}}))
    with pytest.raises(Refusal, match=r"unlike machines .device_name this and that.; expected the same"):
        compare_runs(one, other)
    notes = compare_runs(one, other, across_machines=True).notes
    assert notes[0] == "THE MACHINES ARE UNLIKE: device_name differ."
    assert notes[1].endswith("packages.")


def test_cases_of_one_side_are_listed(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    gone = CASES[0].id
    path = other / "records.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines() if json.loads(line)["id"] != gone))
    found = compare_runs(load(one), load(other))
    assert found.apart == [{"case": gone, "first": "timed", "second": "not there"}]
    assert len(found.lines) == len(CASES) - 1


def test_a_case_that_had_a_time_and_now_fails_ends_the_command_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    path = other / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for ids in ({CASES[0].id}, {case.id for case in CASES}):
        broken = [{**line, "state": "crashed", "reason": "gone"} if line["id"] in ids else line for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in broken))
        assert analysis.__main__.main(["compare", str(one), str(other)]) == 1
        assert f"{CASES[0].id}: had a time in a, failed in b" in capsys.readouterr().err


def test_runs_that_share_no_case_are_refused(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    path = other / "records.jsonl"
    path.write_text(path.read_text().replace('"state": "ok"', '"state": "unsupported"'))
    with pytest.raises(Refusal, match="no case has a time on both sides"):
        compare_runs(load(one), load(other))


def test_a_run_without_canaries_is_compared_and_said_to_have_none(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b", lambda case: 2.0)
    path = other / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "canary": None}) + "\n" for line in lines))
    found = compare_runs(load(one), load(other))
    assert found.count("slower") == len(CASES)
    assert found.notes[-1].startswith("A run has no canaries")


def test_cold_and_warm_caches_are_not_compared(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    path = other / "run.json"
    path.write_text(path.read_text().replace('"warm"', '"cold"'))
    with pytest.raises(Refusal, match="found the caches warm and cold; expected the same"):
        compare_runs(load(one), load(other))


@pytest.mark.parametrize("margin", ["nan", "-1", "0", "inf", "x"])
def test_a_margin_that_is_no_positive_number_is_refused(margin: str) -> None:
    with pytest.raises(SystemExit) as ended:
        analysis.__main__.main(["compare", "a", "b", "--margin", margin])
    assert ended.value.code == 2


def test_a_run_of_an_earlier_version_still_loads(tmp_path: Path) -> None:
    folder = write(tmp_path / "a")
    asked = json.loads((folder / "run.json").read_text())
    del asked["effort"], asked["plan"]["cache"]
    (folder / "run.json").write_text(json.dumps(asked))
    kept = ("schema", "id", "pass", "state", "reason", "cost", "counts", "seconds", "first_call_seconds", "error")
    kept += ("peak_bytes", "energy_joules", "ran", "started", "load", "environment")
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    old = [{key: line[key] for key in kept} | {"case": line["case"]} for line in lines]
    for line in old:
        del line["case"]["copy"]
    first = [line for line in old if "copy1" not in line["id"]]
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in first))
    run = load(folder)
    assert run.cases["seconds"].notna().all() and len(run.cases) == len(CASES) / 2
    assert write_report(run)
    assert compare_runs(run, load(write(tmp_path / "b"))).notes[-1].startswith("A run has no canaries")


def test_the_committed_run_loads() -> None:
    assert load(ROOT / "results" / "reference" / "xeon-2-cores").cases["seconds"].notna().sum() > 100
