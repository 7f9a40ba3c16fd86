"""`vitbench predict`: what it answers, what it says of its own knowledge, and one line for whatever is wrong."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import documents
import pytest

from vitbench.asked import Asked
from vitbench.cli import main
from vitbench.cpu import CONSTANTS
from vitbench.devices import card
from vitbench.gpu import DATASHEET
from vitbench.knowledge import HELD, LEVELS, Knowledge
from vitbench.largest import largest_batch
from vitbench.machine import Price, cpu_here, machine, on_card, on_cpu
from vitbench.measure.environment import processor
from vitbench.memory import Setup
from vitbench.predict import Prediction, predict
from vitbench.predict_page import lines
from vitbench.refusal import Refusal

MORE = ("--memory", "10TB")  # than a card has
CARD = ("--device", "rtx4090")
RATES = {one.name: one.start for one in CONSTANTS}
QUANTILES = {"0.05": -0.2, "0.25": -0.1, "0.5": 0.0, "0.75": 0.1, "0.95": 0.3}


FITTED = {
    **DATASHEET,
    "compute": 0.9,
    "memory": 0.8,
    "launch_seconds": 3e-6,
    "ramp": 100,
    "strided": 0.8,
    "layout": 0.7,
}
CONSTANTS_FROM = "constants fitted on published times of a card"
EARNED = Knowledge("fitted", FITTED, (0.8, 1.3), f"{CONSTANTS_FROM}; nine of ten took 0.80 to 1.30 times it")
KNOWN = on_card(card("rtx4090"))._replace(known=lambda _: EARNED)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["predict", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["predict", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def calibration(folder: Path, **environment: Any) -> Path:
    """A run that was calibrated on this machine, or on one that differs from it."""
    folder.mkdir(parents=True)
    content = {
        "environment": {**processor(), **environment},
        "constants": [{"name": name, "value": value} for name, value in RATES.items()],
        "times": [],
        "log_error_quantiles": QUANTILES,
    }
    (folder / "calibration.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("words", [(), ("--mode", "training", "--compiled", "--batch", "4")], ids=" ".join)
def test_the_schema_is_as_documented(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "vit_ti_16", *CARD, *words)
    assert set(found) == documents.keys("vitbench predict SOURCE --json")
    assert set(found["operators"][0]) <= documents.named("vitbench predict SOURCE --json")
    assert found["knowledge"] in LEVELS
    assert found["images_per_second"] == pytest.approx(found["batch"] / found["seconds"])
    assert sum(one["seconds"] for one in found["operators"]) == pytest.approx(found["seconds"])
    taken = [one["seconds"] for one in found["operators"]]
    assert taken == sorted(taken, reverse=True)
    assert (found["interval"] is None) == ("no interval: " in found["words"])
    assert found["fits"] is True and found["memory_bytes"] == 24_000_000_000


def test_what_people_read_names_knowledge_and_interval() -> None:
    found = predict(Asked("vit_ti_16", batch=64), KNOWN)
    page = "\n".join(lines(found))
    assert f"fitted: {EARNED.words}" in page and "amp (float16 products" in page
    assert found.interval == (pytest.approx(0.8 * found.seconds), pytest.approx(1.3 * found.seconds))
    assert " in 9 of 10 times of its kind" in page
    assert page.index("addmm") < page.index("cat ")


def test_an_interval_is_for_what_was_held_out() -> None:
    asked: list[dict[str, object]] = []

    def known(_: str, **way: object) -> Knowledge:
        asked.append(way)
        return EARNED

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vitbench.machine.known", known)
        for dtype, mode in (HELD, ("float32", "inference"), ("amp", "training")):
            predict(Asked("vit_ti_16", batch=64, dtype=dtype, mode=mode), on_card(card("rtx4090")))
    assert [way["lacking"] is None for way in asked] == [True, False, False]
    assert {(way["family"], way["attention"]) for way in asked} == {(None, True)}


def test_times_of_launches_have_no_interval() -> None:
    found = of(batch=1)
    assert found.interval is None
    assert found.words.startswith(f"{CONSTANTS_FROM}; no interval: launches bind operators of ")
    assert "no interval\n" in "\n".join(lines(found))


@cache
def of(**asked: Any) -> Prediction:
    return predict(Asked(**{"source": "vit_ti_16", "batch": 8, **asked}), KNOWN)


def test_a_batch_takes_longer_than_a_smaller_one_and_each_image_no_longer() -> None:
    small, large = of(), of(batch=16)
    assert small.seconds < large.seconds < 2 * small.seconds
    assert small.peak_bytes < large.peak_bytes < 2 * small.peak_bytes
    assert small.largest_batch == pytest.approx(large.largest_batch, rel=0.01)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    most = of().largest_batch
    assert most is not None
    assert (of(batch=most).fits, of(batch=most + 1).fits) == (True, False)


@pytest.mark.parametrize(
    "asked", [{"mode": "training"}, {"backend": "naive", "image": (384, 384)}], ids=["training", "naive"]
)
def test_the_largest_batch_does_not_depend_on_the_traced_one(asked: dict[str, Any]) -> None:
    """From one image alone it would be another: that one is spared copies, and casts of gradients seem to grow."""
    most = of(batch=1, **asked).largest_batch
    assert most is not None
    assert (of(batch=most, **asked).fits, of(batch=most + 1, **asked).fits) == (True, False)


@pytest.mark.parametrize("member", ["flash", "efficient", "cudnn"])
def test_a_kernel_by_its_name_needs_no_card(member: str) -> None:
    assert of(backend=f"sdpa.{member}").seconds == pytest.approx(of().seconds)


def test_a_product_of_nothing_takes_a_launch(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "sources:empty", *CARD)["seconds"] > 0


@pytest.mark.parametrize(("source", "step"), [("vit_ti_16", 16), ("swin_t", 32)])
def test_the_largest_image_fits_and_one_step_more_does_not(source: str, step: int) -> None:
    side = of(source=source).largest_image
    assert side is not None
    assert [of(source=source, image=(one, one)).fits for one in (side, side + step)] == [True, False]


def test_a_given_memory_bounds_batch_and_image(capsys: pytest.CaptureFixture[str]) -> None:
    whole, part, more = (told(capsys, "vit_ti_16", *CARD, *words) for words in ((), ("--memory", "1GB"), MORE))
    assert part["memory_bytes"] == 10**9 and more == whole
    assert 0 < part["largest_batch"] < whole["largest_batch"] and 0 < part["largest_image"] < whole["largest_image"]
    assert "memory 'much' is no amount" in refused(capsys, "vit_ti_16", *CARD, "--memory", "much")


def test_where_nothing_fits() -> None:
    found = predict(Asked("vit_ti_16"), KNOWN._replace(memory_bytes=1_000_000))
    assert (found.fits, found.largest_batch, found.largest_image) == (False, 0, 0)
    page = "\n".join(lines(found))
    assert "does not fit" in page and "largest image       none" in page


@pytest.mark.parametrize("source", ["vit_ti_16", "timm:resnet18"])
def test_the_largest_batch_here_is_that_of_its_memory(source: str) -> None:
    room, image = 100_000_000, (64, 64)
    here = on_cpu("a CPU", room, {})._replace(known=lambda _: EARNED._replace(constants=RATES))
    found = predict(Asked(source, image, 2), here)
    exact, memory = largest_batch(Setup(source, image), room)
    assert found.largest_batch == pytest.approx(exact, rel=0.01)
    assert found.peak_bytes == Setup(source, image, 2).memory().peak_bytes < memory.peak_bytes <= room


def test_attention_written_out_takes_no_less() -> None:
    fused, naive = of(), of(backend="naive")
    assert naive.seconds > fused.seconds
    assert sum(one.bytes for one in naive.operators) > sum(one.bytes for one in fused.operators)
    assert {one.kind for one in fused.operators} - {one.kind for one in naive.operators} == {"attention"}
    assert "attention" not in {one.kind for one in of(backend="sdpa.math").operators}


def test_a_compiled_program_moves_less() -> None:
    plain, merged = of(), of(compiled=True)
    assert merged.seconds < plain.seconds
    assert any(one.kind == "region" for one in merged.operators)
    assert any("as written" in note for note in merged.notes)


def test_window_and_patch_of_the_suites_own_models() -> None:
    assert of(patch=32).seconds < of(patch=16).seconds == of().seconds
    wide, own = of(source="swin_t", window=14, batch=1), of(source="swin_t", batch=1)
    assert sum(one.macs for one in wide.operators) > sum(one.macs for one in own.operators)


def test_what_binds_an_operator() -> None:
    bound = {one.operator: one.bound for one in of(source="vit_b_16", batch=64).operators}
    assert (bound["addmm"], bound["gelu"]) == ("arithmetic", "memory")
    one = of(batch=1)
    assert {each.bound for each in one.operators if each.kind == "pointwise"} == {"launches"}


def test_a_source_with_inputs_of_its_own_is_no_image(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "sources:attention", *CARD)
    assert found["image"] is found["images_per_second"] is found["largest_batch"] is found["largest_image"] is None
    assert found["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vit_ti_16", "--device", "rtx9000"), "unknown device 'rtx9000'; known: here, rtx3090"),
        (("vit_ti_16", *CARD, "--image", "225"), "image 225 is not divisible by patch 16"),
        (("vit_ti_16", *CARD, "--image", "wide"), "image 'wide' is no size in pixels"),
        (("vit_ti_16", *CARD, "--batch", "0"), "batch 0 is less than 1"),
        (
            ("vit_ti_16", *CARD, "--batch", str(10**30)),
            "pixels is no tensor; expected at most 7,659,183,039,745 images",
        ),
        (("vit_ti_16", "--device", "RTX 9"), "to add one, write [rtx-9] with title, flops"),
        (("sources:idle", *CARD), "sources:idle runs no operator that takes time"),
        (("resnet50", *CARD, "--backend", "naive"), "resnet50 hands no attention to a backend; expected no --backend"),
        (("vit_ti_16", *CARD, "--dtype", "int4"), "dtype 'int4' is not predicted on NVIDIA GeForce RTX 4090; expected"),
        (("vit_ti_16", "--device", "t4", "--dtype", "bfloat16"), "NVIDIA T4 has no known peak in bfloat16"),
        (("vit_ti_16", *CARD, "--backend", "flex"), "backend 'flex' is not predicted; expected one of naive, sdpa"),
        (("sources:attention", *CARD, "--backend", "sdpa.math"), "is for the suite's own models"),
        (("sources:attention", *CARD, "--backend", "naive"), "cannot be written out by a switch"),
        (("sources:attention", *CARD, "--window", "7"), "--window is for the suite's own models"),
        (("vit_ti_16", *CARD, "--window", "7"), "vit_ti_16 has no window"),
        (("swin_t", *CARD, "--window", "0"), "--window 0 is less than 1"),
        (("sources:choosy", *CARD), "at 224x224 cannot be traced (inference): ValueError: 64 pixels, not 224"),
        (("sources:left_in_forward", *CARD), "left_in_forward at 224x224 cannot be traced (inference): SystemExit"),
        (("nothing", *CARD), "unknown model 'nothing'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_line_for_what_is_wrong(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused(capsys, *words)


def test_here_is_this_cpu_by_its_newest_calibration(tmp_path: Path) -> None:
    calibration(tmp_path / "reference" / "other", cpu="another")
    with pytest.raises(Refusal, match=r"no run of this CPU .* is calibrated .*vitbench calibrate RUN"):
        cpu_here(tmp_path)
    calibration(tmp_path / "reference" / "own")
    found = predict(Asked("vit_ti_16"), cpu_here(tmp_path))
    assert (found.device, found.dtype, found.knowledge) == ("here", "float32", "calibrated")
    assert found.interval is not None and found.interval[0] < found.seconds < found.interval[1]
    assert found.constants == RATES
    for asked in (Asked("vit_ti_16", dtype="amp"), Asked("vit_ti_16", compiled=True)):
        with pytest.raises(Refusal, match=r"dtype 'amp' is not predicted on|compiled programs are not predicted on"):
            predict(asked, cpu_here(tmp_path))


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"),
        ("NVIDIA H200", "h200"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla T4", "t4"),
    ],
)
def test_the_card_here_is_known_by_its_title(seen: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitbench.machine._card_here", lambda: seen)
    assert machine(None).name == machine("here").name == name


@pytest.mark.parametrize("seen", ["NVIDIA H100 NVL", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100 80GB PCIe"])
def test_a_card_that_is_none_of_them_is_refused(seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitbench.machine._card_here", lambda: seen)
    with pytest.raises(Refusal, match="unknown device"):
        machine("here")


def test_without_a_card_one_is_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitbench.machine._card_here", lambda: None)
    with pytest.raises(Refusal, match=r"sees no card here; expected --device here .*rtx4090"):
        machine(None)


def test_a_price_is_of_the_constants() -> None:
    price: Price = on_cpu("a CPU", None, {}).price(RATES)
    from vitbench.work import Work

    assert price(Work("mm", "product", "float32", 10**11, 0, 0, 1, launches=0)) == pytest.approx(1.0)


@pytest.mark.parametrize("words", [("vit_ti_16", 3, None), ("swin_t", 2, 8)])
def test_what_is_on_paper_is_told_as_its_trace_is(words: tuple[str, int, int | None]) -> None:
    source, batch, window = words
    asked = Asked(source, (256, 256), batch, window=window)
    paper, traced = (predict(asked, KNOWN._replace(on_paper=on_paper)) for on_paper in (True, False))
    assert paper.seconds == pytest.approx(traced.seconds, rel=1e-9)
    assert paper.peak_bytes == pytest.approx(traced.peak_bytes, rel=1e-3)
    assert {one.operator: one.bytes for one in paper.operators if one.macs} == {
        one.operator: one.bytes for one in traced.operators if one.macs
    }
