"""vitbench audit --table as a whole: models counted in other processes, every verdict, failures and Ctrl-C.

Figures of TABLE are from huggingface/pytorch-image-models, results/, Apache-2.0 (pt113, pt210 and pt240 on RTX 3090),
but for the row of resnet18 at 288, which holds the number for 224.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import documents
import pytest
from bench import LIMIT

from vitbench.cli import main
from vitbench.published import processes
from vitbench.published.counts import Recount, sources
from vitbench.refusal import Refusal

TABLE = """model,infer_img_size,infer_samples_per_sec,infer_gmacs,param_count
resnet18,160,0,0.93,11.69
resnet18,224,0,1.82,11.69
resnet18,288,0,1.82,11.69
convnext_atto,224,0,0.55,3.7
vit_tiny_patch16_224,224,0,1.26,5.72
xcit_nano_12_p16_224,224,0,0.56,3.05
deit_tiny_patch16_224,224,0,1.08,5.72
mobilevit_xxs,256,0,0.34,1.27
convmixer_1024_20_ks9_p14,224,0,5.55,24.38
ecaresnext50t_32x4d,224,0,2.7,15.41
gluon_resnet18_v1b,224,0,1.82,11.69
densenet264,224,0,12.95,72.69
regnety_002,224,0,,3.16
"""
FUSED = "the fused attention products are missing"
WRONG = {
    ("resnet18", 288): "it is the number for 224x224",
    ("deit_tiny_patch16_224", 224): FUSED,
    ("mobilevit_xxs", 256): FUSED,
    ("convmixer_1024_20_ks9_p14", 224): "the convolutions with padding='same' are missing",
}
UNKNOWN = {
    ("ecaresnext50t_32x4d", 224): "another model by that name: its parameters are 15.41 in the table, ",
    ("densenet264", 224): "neither timm nor torchvision has it",
    ("regnety_002", 224): "the table has no number for it",
}


def test_a_table_as_timm_publishes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("timm")
    monkeypatch.setattr("vitbench.published.processes.FEW", 0)  # so that two processes count
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    assert main(["audit", "--table", str(path), "--json"]) == 1
    rows = {(row["model"], row["image"][0]): row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == len(TABLE.splitlines()) - 1
    assert {row["convention"] for row in rows.values()} == {"MACs + norms"}
    assert {row["unit"] for row in rows.values()} == {10**9}
    for key, row in rows.items():
        expected = WRONG.get(key) or UNKNOWN.get(key)
        assert row["verdict"] == ("wrong" if key in WRONG else "unknown" if key in UNKNOWN else "right"), row
        assert (row["reason"] or "").startswith(expected or ""), row
        assert bool(row["reason"]) == bool(expected), row
    tiny = rows["deit_tiny_patch16_224", 224]
    assert tiny["macs"] == 1_253_683_200
    norms = 5 * 25 * 197 * 192
    assert tiny["exact"] == pytest.approx((tiny["macs"] + norms) / 1e9, rel=1e-12)
    assert tiny["published"] == 1.08
    assert rows["gluon_resnet18_v1b", 224]["source"] == "timm:resnet18.gluon_in1k"
    assert rows["densenet264", 224]["exact"] is rows["densenet264", 224]["macs"] is None


def test_without_a_library_of_models_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(Refusal, match="pip install timm"):
        sources(["resnet18"])
    assert sources(["own:model"]) == {"own:model": "own:model"}


OWN = """
import os, pathlib, time, torch
def linear():
    return torch.nn.Linear(8, 8, bias=False), (torch.zeros(1, 8),)
def dies():
    os._exit(3)
def fails():
    raise ValueError("of its own [words]")
def sleeps():
    pathlib.Path("asleep").touch()
    time.sleep(600)
"""


def own_table(folder: Path, *names: str) -> Path:
    (folder / "own_models.py").write_text(OWN)
    path = folder / "own.csv"
    path.write_text("model,macs\n" + "".join(f"own_models:{name},64\n" for name in names))
    return path


def test_a_model_that_fails_costs_its_own_row_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "--table", str(own_table(tmp_path, "dies", "fails", "linear", "linear"))]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "2 right, 0 wrong, 2 unknown" in page
    assert "the process that counted it ended" in page
    assert "ValueError: of its own [words]" in page


def test_a_model_that_hangs_costs_its_own_row_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    names = ("linear", "sleeps", "linear")
    with processes.counting() as counting:
        counts = counting.of([(f"own_models:{name}", None) for name in names])
        assert isinstance(next(counts)[1], Recount)  # by then torch is imported
        with monkeypatch.context() as patch:
            patch.setattr(processes, "LIMIT", 0.5)
            assert next(counts) == (("own_models:sleeps", None), "no count within 0.5 seconds")
        assert isinstance(next(counts)[1], Recount)
        assert next(counts, None) is None


def test_ctrl_c_ends_at_once_and_prints_what_there_is(tmp_path: Path) -> None:
    path = own_table(tmp_path, "linear", "sleeps", "fails")
    command = [sys.executable, "-m", "vitbench", "audit", "--table", str(path), "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        while not (tmp_path / "asleep").exists():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LIMIT)  # the sleeper takes twice as long
    assert process.returncode == 130
    assert b"Traceback" not in error
    verdicts = [row["verdict"] for row in json.loads(out)]
    assert all(set(row) == documents.keys("vitbench audit --table FILE.csv --json") for row in json.loads(out))
    assert verdicts == ["right", "unknown", "unknown"]
