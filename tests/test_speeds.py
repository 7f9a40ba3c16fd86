"""Published speeds, read; and what is no such table refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import validate
from vitbench.validation.speeds import read

NAME = "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv"
HEADER = "model,infer_samples_per_sec,infer_step_time,infer_batch_size,infer_img_size,infer_gmacs,infer_macts"
LINE = "test_vit,1000.0,20.5,256,160,0.04,0.48"


def put(folder: Path, *lines: str, name: str = NAME, header: str = HEADER) -> Path:
    path = folder / name
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "torch", "card", "compiled", "eager", "halves"),
    [
        (NAME, 240, "rtx4090", False, False, True),
        (NAME.replace(".csv", "-dynamo.csv"), 240, "rtx4090", True, False, True),
        (NAME.replace("rtx4090", "4090"), 240, "rtx4090", False, False, True),
        (NAME.replace("pt240", "pt260"), 260, "rtx4090", False, False, False),
        ("benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv", 113, "rtx3090", False, True, True),
    ],
)
def test_the_name_of_a_table_says_what_ran(
    name: str, torch: int, card: str, compiled: bool, eager: bool, halves: bool, tmp_path: Path
) -> None:
    found = read(put(tmp_path, LINE, name=name))
    assert (found.name, found.torch, found.card) == (name, torch, card)
    assert (found.compiled, found.eager, found.halves) == (compiled, eager, halves)


def test_a_row_is_read_into_base_units_and_one_without_a_speed_is_left_out(tmp_path: Path) -> None:
    lines = LINE, "too_large,,,,160,0.04,0.48", "cut_short", "uncounted,1.0,2.0,8.0,224,,", "tiny,1,2,8,32,0.00,0.0"
    first, uncounted, tiny = read(put(tmp_path, *lines)).speeds
    assert (first.model, first.image, first.batch) == ("test_vit", 160, 256)
    assert first.seconds == pytest.approx(0.0205)
    assert (first.macs, first.activations) == (pytest.approx(4e7), pytest.approx(4.8e5))
    assert (uncounted.model, uncounted.batch, uncounted.macs, uncounted.activations) == ("uncounted", 8, None, None)
    assert (tiny.macs, tiny.activations) == (None, None)


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "another name": (lambda at: put(at, LINE, name="speeds.csv"), "expected a name such as benchmark-infer-amp-nchw-"),
    "another layout": (lambda at: put(at, LINE, name=NAME.replace("nchw", "nhwc")), "does not name torch and card"),
    "training": (lambda at: put(at, LINE, name=NAME.replace("infer", "train")), "does not name torch and card"),
    "another card": (lambda at: put(at, LINE, name=NAME.replace("4090", "9999")), "unknown device 'rtx9999'; known: "),
    "other columns": (lambda at: put(at, "vit,1", header="model,infer_step_time"), "lacks columns infer_batch_size, "),
    "no rows": (lambda at: put(at), "lacks columns and rows"),
    "no file": (lambda at: at / NAME, "cannot be read"),
    "no text": (lambda at: binary(at), "cannot be read"),
    "no number": (lambda at: put(at, LINE.replace("20.5", "fast")), "test_vit: infer_step_time is 'fast'; expected a "),
    "no time": (lambda at: put(at, LINE.replace("20.5", "-1")), "infer_step_time is '-1'; expected a number above 0"),
    "no image": (lambda at: put(at, LINE.replace("160", "")), "infer_img_size is ''; expected a number above 0"),
    "half an image": (lambda at: put(at, LINE.replace("256", "1.5")), "infer_batch_size is '1.5'; expected a whole "),
    "a batch of all": (lambda at: put(at, LINE.replace("256", "1e300")), "infer_batch_size is '1e300'; expected a "),
    "no time left": (lambda at: put(at, LINE.replace("20.5", "1e-322")), "infer_step_time is '1e-322'; expected a "),
    "MACs of all": (lambda at: put(at, LINE.replace("0.04", "1e300")), "infer_gmacs is '1e300'; expected a number"),
    "no attention": (lambda at: put(at, LINE.replace("test_vit", "gone")), "has none to fit to among 1 speeds; expec"),
}


def binary(folder: Path) -> Path:
    path = folder / NAME
    path.write_bytes(b"\xff\xfe\x00")
    return path


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table_is_refused_in_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, said = REFUSED[what]
    assert validate.main([str(make(tmp_path)), "--run", str(run(tmp_path / "run"))]) == 2
    written = capsys.readouterr()
    assert said in written.err and written.err.count("\n") == 1 and not written.out
    assert not (tmp_path / "run" / validate.FILE).exists()


def run(folder: Path) -> Path:
    """A run that measured nothing."""
    folder.mkdir()
    plan = {"profile": "quick", "cases": {}}
    (folder / "run.json").write_text(json.dumps({"schema": 1, "plan": plan, "started": 1.0}))
    return folder


def test_without_a_run_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(put(tmp_path, LINE)), "--results", str(tmp_path)]) == 2
    assert "no run under" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        validate.main([])
