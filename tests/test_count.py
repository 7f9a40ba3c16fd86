"""`vitbench count`: the figures of the field, the schema of its JSON, and one line for whatever is wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import documents
import pytest

from vitbench.cli import main
from vitbench.count import count
from vitbench.count_page import folded
from vitbench.source import LIBRARIES

ROOT = Path(__file__).resolve().parents[1]
VIT_B, SWIN_T = 17_563_828_224, 4_490_566_656
PUBLISHED = {  # 10^9 MACs and parameters of torchvision 0.29.1's weights metadata (_ops)
    ("vit_b_16", 224): ("17.564", 86_567_656),
    ("vit_b_16", 384): ("55.484", 86_859_496),
    ("vit_b_32", 224): ("4.409", 88_224_232),
    ("vit_l_16", 224): ("61.555", 304_326_632),
    ("vit_l_16", 512): ("361.986", 305_174_504),
    ("vit_l_32", 224): ("15.378", 306_535_400),
    ("vit_h_14", 224): ("167.295", 632_045_800),
    ("vit_h_14", 518): ("1016.717", 633_470_440),
    ("swin_t", 224): ("4.491", 28_288_354),
    ("swin_s", 224): ("8.741", 49_606_258),
    ("swin_b", 224): ("15.431", 87_768_224),
    ("swin_v2_t", 256): ("5.940", 28_351_570),
    ("swin_v2_s", 256): ("11.546", 49_737_442),
    ("swin_v2_b", 256): ("20.325", 87_930_848),
    ("maxvit_t", 224): ("5.558", 30_919_624),
    ("convnext_tiny", 224): ("4.456", 28_589_128),
    ("resnet50", 224): ("4.089", 25_557_032),
}


def run(*arguments: str) -> int:
    return main(["count", *arguments])


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
@pytest.mark.parametrize(("name", "image"), PUBLISHED, ids=str)
def test_models_of_torchvision_are_those_of_its_metadata_to_the_last_digit(name: str, image: int) -> None:
    found = count(f"torchvision:{name}", (image, image))
    gigamacs, parameters = PUBLISHED[name, image]
    assert (f"{found.macs / 1e9:.3f}", found.parameters) == (gigamacs, parameters)
    assert found.uncounted == ()


@pytest.mark.parametrize(
    ("source", "macs"),
    [
        ("vit_b_16", VIT_B),
        ("timm:vit_base_patch16_224", VIT_B),
        ("torchvision:vit_b_16", VIT_B),
        ("swin_t", SWIN_T),
        ("timm:swin_tiny_patch4_window7_224", SWIN_T),
        ("torchvision:swin_t", SWIN_T),
    ],
)
def test_one_model_has_one_count_whoever_wrote_it(source: str, macs: int) -> None:
    package = source.partition(":")[0] if ":" in source else "torch"
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = count(source)
    assert (found.macs, found.image) == (macs, (224, 224))


def test_training_is_thrice_the_forward_less_the_gradient_of_the_image() -> None:
    assert count("vit_b_16", mode="training").macs == 52_575_879_168
    assert count("swin_t", (1024, 1024)).macs == 98_410_888_320


def test_an_image_may_be_no_square() -> None:
    tall = count("vit_b_16", (224, 320))
    assert tall.macs == count("vit_b_16", (320, 224)).macs == count("vit_b_16", (320, 224), by="operator").macs


@pytest.mark.parametrize("by", ["term", "operator", "module"])
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_the_parts_add_up(by: str, mode: str) -> None:
    for source in ("vit_ti_16", "sources:attention"):
        found = count(source, by=by, mode=mode)
        assert sum((found.parts or found.terms).values()) == found.macs


def test_a_built_in_and_its_own_program_agree_in_every_figure_that_both_have() -> None:
    paper, counted = (count("swin_t", (256, 320), 2, by=by).to_dict() for by in ("term", "operator"))
    for key in ("macs", "weight_macs", "pair_macs", "parameters", "score_elements"):
        assert paper[key] == counted[key], key


@pytest.mark.parametrize("arguments", [("vit_ti_16",), ("vit_ti_16", "--by", "operator", "--mode", "training")])
def test_the_schema_is_as_documented(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, *arguments)
    assert set(found) == documents.keys("vitbench count SOURCE --json")
    assert found["schema"] == 1
    assert found["flops"] == 2 * found["macs"]
    parts = [found[f"{kind}_macs"] for kind in ("weight", "pair", "other")]
    assert sum(parts) == sum(found["terms"].values()) == found["macs"]
    assert sum(found["by"]["macs"].values()) == found["macs"]
    types = {key: type(value).__name__ for key, value in found.items()}
    assert types == {
        **dict.fromkeys(("schema", "batch", "macs", "flops", "weight_macs", "pair_macs", "score_elements"), "int"),
        **dict.fromkeys(("elementwise", "other_macs"), "int"),
        **dict.fromkeys(("source", "mode", "method"), "str"),
        **dict.fromkeys(("image", "uncounted", "notes"), "list"),
        **dict.fromkeys(("terms", "parameters", "peak_activation_bytes", "by"), "dict"),
    }
    assert set(found["peak_activation_bytes"]) == {"inference", "training"}
    assert set(found["parameters"]) == {"total", "trainable"}


def test_what_is_null_has_a_note() -> None:
    found = count("resnet50")
    assert found.peak_bytes == {"inference": None, "training": None}
    assert any("peak" in note for note in found.notes)


def test_csv_has_a_row_a_part_and_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("vit_b_16", "--csv", "--by", "module") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["module"] for row in rows] == ["patches", "blocks", "head", "total"]
    assert int(rows[-1]["macs"]) == sum(int(row["macs"]) for row in rows[:-1]) == VIT_B


def test_what_people_read_names_macs_and_flops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("vit_b_16") == 0
    page = capsys.readouterr().out
    assert f"{VIT_B:,}" in page and f"{2 * VIT_B:,}" in page and "2 a MAC" in page


def test_modules_that_differ_in_a_number_alone_are_folded() -> None:
    parts = {"blocks.0.mlp": 3, "blocks.1.mlp": 4, "blocks.10.mlp": 5, "head": 1}
    assert folded(parts) == {"blocks.0-10.mlp (3 modules)": 12, "head": 1}


BAD = {  # what is asked -> what the one line must hold
    ("vit_b_99",): "unknown model 'vit_b_99'; known: .*vit_b_16",
    ("timm:vit_bas",): "unknown timm model 'vit_bas'",
    ("torchvision:vit_b_17",): "unknown torchvision model 'vit_b_17'; known: .*vit_b_16",
    ("hf:ViTModle",): "unknown hf model 'ViTModle'; known: .*ViTModel",
    ("hf:ViTConfig",): "hf:ViTConfig is no model",
    (":x",): "source ':x' is none of",
    ("x:",): "source 'x:' is none of",
    ("no_such_package:make",): "no module no_such_package: pip install no_such_package",
    ("sources:nothing",): "sources has no 'nothing'",
    ("sources:raising",): "sources:raising cannot be made: ZeroDivisionError: no luck",
    ("sources:wanting",): "sources:wanting cannot be made: TypeError: .*width",
    ("sources:number",): "sources:number gives a int; expected a torch.nn.Module",
    ("sources:text",): "gives a str; expected a torch.nn.Module",
    ("sources:importing",): "sources:importing cannot be made: ImportError: no_such_package is wanted",
    ("broken_source:make",): "importing broken_source raises RuntimeError: broken on purpose",
    ("sources:leaving",): "sources:leaving cannot be made: SystemExit: 0",
    ("sources:left_in_forward",): "sources:left_in_forward refuses images of 224x224 in inference: SystemExit: 0",
    ("sources:lazy",): "lazy parameters, without a size; expected its factory to call the module once",
    ("../x:y",): "source '../x:y' is none of",
    ("hf:PreTrainedModel",): "hf:PreTrainedModel is no model",
    ("sources:attention", "--image=224"): "brings its own inputs; expected neither an image size nor a batch",
    ("sources:choosy", "--image=96"): "refuses images of 96x96 in inference: ValueError: 64 pixels, not 96",
    ("vit_b_16", "--image=225"): "image 225 is not divisible by patch 16",
    ("vit_b_16", "--by=operator", "--image=225"): "image 225 is not divisible by patch 16",
    ("vit_b_16", "--image=0"): "image '0' is no size in pixels",
    ("vit_b_16", "--image=2x2x2"): "image '2x2x2' is no size in pixels",
    ("vit_b_16", "--image=-16"): "image '-16' is no size in pixels",
    ("vit_b_16", "--batch=0"): "batch 0 is less than 1",
    ("timm:vit_tiny_patch16_224", "--image=8"): "timm:vit_tiny_patch16_224",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    package = {"timm": "timm", "torchvision": "torchvision", "hf": "transformers"}.get(arguments[0].partition(":")[0])
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert run(*arguments) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.count("\n") == 1
    assert re.search(BAD[arguments], written.err), written.err


def test_a_package_that_is_not_installed_is_named_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for source, package in (("timm:x", "timm"), ("torchvision:x", "torchvision"), ("hf:X", "transformers")):
        assert run(source) == 2
        assert f"is not installed: pip install {package}" in capsys.readouterr().err


def test_a_package_that_cannot_be_imported_is_refused_in_its_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = LIBRARIES["torchvision"]._replace(names=lambda: [str(int("abc"))])
    monkeypatch.setitem(LIBRARIES, "torchvision", library)
    assert run("torchvision:swin_t") == 2
    said = capsys.readouterr().err
    assert "torchvision:swin_t: importing torchvision raises ValueError: invalid literal" in said
    assert said.count("\n") == 1


def test_a_built_in_is_answered_without_torch() -> None:
    asked = "from vitbench.cli import main; main(['count', 'vit_b_16', '--json'])"
    code = f"{asked}; import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_a_page_has_letters_that_a_terminal_lacks() -> None:
    code = "from vitbench.cli import main; main(['predict', 'vit_ti_16', '--device', 'V100'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "?s" in done.stdout  # microseconds


def test_what_a_factory_prints_is_not_among_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "sources:printing")["macs"] == 7 * 4 * 3


def test_an_input_that_takes_a_gradient_keeps_taking_it() -> None:
    """Torch's older checkpointing gives weights no gradient without one."""
    assert count("sources:checkpointed", mode="training").macs == 4 * 2 * 8 * 8
