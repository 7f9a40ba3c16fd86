"""Accuracy on scikit-learn's digits: a tiny training end to end, its record, and the study of it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from analysis.load import Run
from analysis.study import Answer, studies
from benchmarks import accuracy
from benchmarks.digits import TEST, Digits, digits
from vitbench.operator import parse_operator
from vitbench.program import build
from vitbench.shape import Shape

VIT_4, *_, SWIN = accuracy.CONTENDERS
ASKED = {"plan": {"profile": "smoke", "cases": {}}, "started": 0.0}  # what makes a folder that of a run


@pytest.fixture(scope="module")
def data() -> Digits:
    pytest.importorskip("sklearn")
    return digits()


def folder_of_a_run(path: Path) -> Path:
    path.mkdir()
    (path / "run.json").write_text(json.dumps(ASKED))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With the record of one epoch of all contenders that have few tokens, and of Swin."""
    pytest.importorskip("sklearn")
    results = tmp_path_factory.mktemp("results")
    path = folder_of_a_run(results / "smoke-cpu")
    few = tuple(one for one in accuracy.CONTENDERS if one.case(1).shape.tokens < 64 or one is SWIN)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("EPOCHS", 1), ("ROUNDS", 2), ("TIMED", 3), ("CONTENDERS", few)):
            patch.setattr(accuracy, name, value)
        assert accuracy.main(["--results", str(results), "--seeds", "1"]) == 0
    yield path


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[str, Any]:
    return json.loads((folder / accuracy.FILE).read_text())


def answer(folder: Path) -> Answer | None:
    return studies["accuracy"].answer(Run(folder, None, {}, {}, {}))  # type: ignore[arg-type]  # it asks for no case


def test_no_image_is_in_both_halves(data: Digits) -> None:
    places = [*data.train.tolist(), *data.test.tolist()]
    assert sorted(places) == list(range(1797))
    halves = [{image.numpy().tobytes() for image in data.images[half]} for half in (data.train, data.test)]
    assert not halves[0] & halves[1]


def test_each_digit_is_split_alike(data: Digits) -> None:
    of_all, held_out = (Counter(digits.tolist()) for digits in (data.digits, data.digits[data.test]))
    for digit in range(10):
        assert abs(held_out[digit] - TEST * of_all[digit]) < 1


def test_images_are_standardised_by_what_is_trained_on(data: Digits) -> None:
    trained_on = data.images[data.train]
    torch.testing.assert_close(trained_on.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(trained_on.std(), torch.tensor(1.0), atol=1e-3, rtol=0)
    assert data.images.shape == (1797, 3, 8, 8)
    assert (data.images == data.images[:, :1]).all()


def test_enlarged_images_are_torchs_nearest(data: Digits) -> None:
    expected = torch.nn.functional.interpolate(data.images, size=32, mode="nearest")
    assert (data.enlarged(32) == expected).all()
    assert (data.enlarged(8) == data.images).all()


@pytest.mark.parametrize("one", accuracy.CONTENDERS, ids=lambda one: one.name)
def test_a_contender_takes_its_images_and_has_the_parameters_on_paper(one: accuracy.Contender) -> None:
    case = one.case(2, "training")
    program = build(case, device="meta")
    assert program.inputs[0].shape == (2, 3, one.image, one.image)
    assert program.module(*program.inputs).shape == (2, 10)
    assert sum(p.numel() for p in program.module.parameters()) == case.cost().parameters


def test_the_macs_of_a_vit_in_the_file_are_its_formula(written: dict[str, Any]) -> None:
    vits = [row for row in written["rows"] if row["kind"] == "vit"]
    assert len(vits) == 4
    for row in vits:
        n, d, hidden = (8 // row["patch"]) ** 2, row["dim"], 64
        embedding = n * 3 * row["patch"] ** 2 * d
        macs = embedding + 4 * n * d**2 + 2 * n**2 * d + 2 * n * d * hidden + 10 * d
        assert (row["tokens"], row["macs"]) == (n, macs)
        assert row["training_macs"] == row["batch"] * (3 * macs - embedding)  # no one takes the gradient of an image


def test_costs_in_the_file_are_those_of_the_operator_named(written: dict[str, Any]) -> None:
    for row in written["rows"]:
        side = row["image"] // row["patch"]
        operator, shape = parse_operator(row["model"]), Shape(1, side, side, row["dim"], row["heads"])
        batch = Shape(row["batch"], side, side, row["dim"], row["heads"])
        assert row["macs"] == operator.cost(shape, "model").total_macs
        assert row["training_macs"] == operator.cost(batch, "model", "training").total_macs
        assert row["parameters"] == operator.cost(shape, "model").parameters


def test_the_record_says_what_was_done(written: dict[str, Any]) -> None:
    assert (written["schema"], written["training"]["seeds"], written["training"]["epochs"]) == (1, [0], 1)
    assert written["data"]["train"] + written["data"]["test"] == 1797
    assert written["environment"]["threads"] == 1
    for row in written["rows"]:
        assert row["steps"] == written["data"]["train"] // row["batch"]
        assert len(row["accuracies"]) == 1 and 0 <= row["accuracies"][0] <= 1
        assert [len(seconds) for seconds in row["seconds"]] == [3, 3]
        medians = [sorted(seconds)[1] for seconds in row["seconds"]]
        assert row["median_seconds"] == pytest.approx(sum(medians) / 2)
        assert min(map(min, row["seconds"])) > 0


def test_nothing_half_written_is_left(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"run.json", accuracy.FILE}


def test_the_study_answers_a_real_record(folder: Path, written: dict[str, Any]) -> None:
    found = answer(folder)
    assert found is not None
    assert set(found.table["model"]) == {row["name"] for row in written["rows"]}
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in found.figure.axes)
    assert len(found.figure.axes) == 2


def test_a_short_training_beats_chance_by_far_and_is_reproducible(data: Digits) -> None:
    one, same, other = (accuracy.Training(VIT_4, data, seed, epochs=2) for seed in (0, 0, 1))
    assert one.accuracy() > 0.5
    weights = [next(training.module.parameters()) for training in (one, same, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(("wrong", "share"), [(0, 0.0), (54, 0.1), (540, 1.0)])
def test_accuracy_is_the_share_of_held_out_images_named_right(data: Digits, wrong: int, share: float) -> None:
    def told(images: torch.Tensor) -> torch.Tensor:
        digits = data.digits[data.test].clone()
        assert torch.equal(images, data.images[data.test])
        digits[:wrong] = (digits[:wrong] + 1) % 10
        return torch.nn.functional.one_hot(digits, 10).float()

    training = SimpleNamespace(module=told, data=data, images=data.images)
    assert accuracy.Training.accuracy(training) == pytest.approx(1 - share)  # type: ignore[arg-type]


def test_it_refuses_without_scikit_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert accuracy.main(["--run", str(folder_of_a_run(tmp_path / "run"))]) == 2
    assert capsys.readouterr().err == "vitbench: scikit-learn is not installed: pip install scikit-learn\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--results", "{}"], "no run under {}; expected one: make bench"),
        (["--run", "{}"], "{} holds no run.json; expected the folder of a run"),
        (["--run", "{}", "--seeds", "0"], "seeds 0 is less than 1"),
    ],
)
def test_it_refuses_before_it_trains(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accuracy, "measure", lambda *_: pytest.fail("it trains"))
    assert accuracy.main([word.format(tmp_path) for word in words]) == 2
    error = capsys.readouterr().err
    assert said.format(tmp_path) in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_json_is_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder_of_a_run(tmp_path / "run")
    monkeypatch.setattr(accuracy, "measure", lambda seeds, _: {"seeds": seeds})
    assert accuracy.main(["--run", str(path), "--seeds", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((path / accuracy.FILE).read_text()) == {"seeds": 7}
