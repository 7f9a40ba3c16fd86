"""Known errors of counters come out with the right value; what cannot count gives a reason, never 0."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import documents
import pytest
import tiny
import torch
from bench import LIMIT
from rich.console import Console
from torch import nn

from vitbench.audits import children, digest, page, worker
from vitbench.audits.rows import audit
from vitbench.cli import main
from vitbench.counter import counters
from vitbench.refusal import Refusal
from vitbench.source import Opened

EXACT = {
    "vit_b_16": 17_563_828_224,
    "multihead_attention": 524_391_936,
    "encoder_layer": 1_453_954_560,
    "core": 59_610_624,
}
OFF = {  # per cent, of ViT-B/16 at 224 with fused attention, then in eval and no_grad with 197 tokens of 768
    "dispatch.device": {"vit_b_16": 0.0, "multihead_attention": -100.0, "encoder_layer": -100.0, "core": 0.0},
    "dispatch.meta": {"vit_b_16": 0.0, "multihead_attention": 0.0, "encoder_layer": 0.0, "core": 0.0},
    "torch.device": {"vit_b_16": -4.1, "multihead_attention": -100.0, "encoder_layer": -100.0, "core": -100.0},
    "torch.meta": {"vit_b_16": 0.0, "multihead_attention": 0.0, "encoder_layer": 0.0, "core": 0.0},
    "fvcore.device": {"vit_b_16": -4.0, "multihead_attention": -100.0, "encoder_layer": -36.0, "core": -100.0},
    "ptflops.device": {"vit_b_16": -3.9, "multihead_attention": 0.2, "encoder_layer": 0.2, "core": -100.0},
    "ptflops.aten.device": {"vit_b_16": -4.0, "multihead_attention": -100.0, "encoder_layer": -36.0, "core": -100.0},
    "thop.device": {"vit_b_16": -4.0, "multihead_attention": -100.0, "encoder_layer": -36.0, "core": -100.0},
    "calflops.device": {"vit_b_16": -4.1, "multihead_attention": -100.0, "encoder_layer": -36.1, "core": -100.0},
    "torchinfo.device": {"vit_b_16": -98.9, "multihead_attention": -100.0, "encoder_layer": -99.7, "core": -100.0},
    "deepspeed.device": {"vit_b_16": 0.0, "multihead_attention": -100.0, "encoder_layer": -36.1, "core": 0.0},
}
KNOWN = [(key, name) for key, row in OFF.items() for name in row]


@pytest.mark.parametrize(("key", "name"), KNOWN, ids=map(" ".join, KNOWN))
def test_known_errors_of_counters(key: str, name: str) -> None:
    if reason := counters[key.rpartition(".")[0]].lacking():
        pytest.skip(reason)
    macs = tiny.counted()[key][f"known {name}"][0]["macs"]
    assert 100 * (macs - EXACT[name]) / EXACT[name] == pytest.approx(OFF[key][name], abs=0.051)


@pytest.mark.parametrize("name", EXACT)
def test_the_exact_count_beside_them(name: str) -> None:
    answer = tiny.counted()["exact.meta"][f"known {name}"][0]
    assert answer["macs"] == answer["digest"]["macs"] == EXACT[name]
    assert answer["closed"] == (EXACT[name] if name == "vit_b_16" else None)


def test_each_count_says_what_it_took() -> None:
    for mods in tiny.counted().values():
        assert mods["linear"][0]["seconds"] > 0 and mods["linear"][0]["peak_bytes"] >= 0


class Keywords(nn.Module):
    """Attention and a layer of it, called by keywords."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(src=x)
        out: torch.Tensor = self.attention(value=x, key=x, query=x)[0]
        return out


def digest_of(module: nn.Module) -> digest.Digest:
    return digest.digest(Opened("own", module.to("meta").eval(), (torch.zeros(tiny.TOKENS, device="meta"),), None))


def test_one_operator_runs_instead_of_a_module_that_is_called_by_keywords() -> None:
    found = {product["whole"] for product in digest_of(Keywords())["products"]}
    layer, attention = ("_transformer_encoder_layer_fwd",), ("_native_multi_head_attention",)
    assert found == {layer, (*layer, *attention), attention}


def compiled(module: nn.Module) -> nn.Module:
    return cast(nn.Module, torch.compile(module))


@pytest.mark.parametrize(
    "of",
    [
        lambda: compiled(nn.Sequential(tiny.Itself(), nn.LayerNorm(8))),
        lambda: nn.Sequential(compiled(tiny.Itself()), compiled(nn.LayerNorm(8))),
    ],
    ids=["as a whole", "in parts"],
)
def test_a_compiled_module_is_counted_as_the_one_that_it_wraps(of: Callable[[], nn.Module]) -> None:
    assert digest_of(of()) == digest_of(nn.Sequential(tiny.Itself(), nn.LayerNorm(8)))


def test_the_exact_count_varies_nothing_that_it_sets_itself_and_is_digested_at_every_step() -> None:
    answers = list(tiny.counted()["exact.meta"]["batch_norm"])
    assert [one["step"] for one in answers] == ["baseline", "twice in a row", "train"]
    assert [one["digest"]["fvcore"][0]["added"] for one in answers] == [2 * 576, 2 * 576, 5 * 576]


def test_a_count_in_training_is_explained_by_what_runs_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := counters["fvcore"].lacking():
        pytest.skip(reason)
    monkeypatch.setattr(children, "all_answers", partial(of_tiny, "batch_norm"))
    (row,) = (row for row in audit("tiny:batch_norm")["rows"] if row["counter"] == "fvcore")
    (train,) = (one for one in row["variations"] if one["name"] == "train")
    assert (row["difference"], train["difference"]) == (2 * 576, 5 * 576)
    assert row["unexplained"] == train["unexplained"] == 0


def of_tiny(name: str, keys: Any, source: str, image: Any, limit: float) -> Any:
    """As children.all_answers, of a tiny module."""
    found = tiny.counted()
    yield from ((key, found[".".join(key)][name]) for key in keys)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(children, "all_answers", partial(of_tiny, "linear"))
    return audit("tiny:linear")


def test_the_schema(found: dict[str, Any]) -> None:
    assert list(found) == ["schema", "source", "image", "exact", "closed", "uncounted", "notes", "rows"]
    assert (found["schema"], found["exact"], found["closed"]) == (1, 384, None)
    compared = ["number", "macs", "difference", "percent", "unexplained", "reasons", "reason"]
    for row in found["rows"]:
        head, tail = ["counter", "place", "convention"], ["uncounted", "seconds", "peak_bytes", "variations"]
        assert list(row) == [*head, *compared, *tail]
        assert all(list(one) == ["name", "changed", *compared] for one in row["variations"])
        assert row["unexplained"] in (0, None)
    assert json.loads(json.dumps(found)) == found
    assert set(found) == documents.keys("vitbench audit SOURCE --json")
    assert {*found["rows"][0], "name", "changed", "words", "by"} <= documents.named("vitbench audit SOURCE --json")


def test_a_variation_that_changes_the_answer_is_named(found: dict[str, Any]) -> None:
    rows = {(row["counter"], row["place"]): row for row in found["rows"]}
    assert not any(one["changed"] for one in rows["dispatch", "device"]["variations"])
    if not counters["ptflops.aten"].lacking():
        changed = [one for one in rows["ptflops.aten", "device"]["variations"] if one["changed"]]
        assert [(one["name"], one["macs"], one["unexplained"]) for one in changed] == [("inference_mode", 0, 0)]


def test_the_page_gives_numbers_and_reasons(found: dict[str, Any]) -> None:
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as written:
        page.show(found, console)
    text = " ".join(written.get().replace("│", " ").split())
    assert "tiny:linear: 384 MACs (768 FLOPs)" in text
    if not counters["ptflops.aten"].lacking():
        assert "+48 biases: 1 for each output of a linear layer" in text
        assert "inference_mode: 0 (-100.00 %)" in text


def test_a_missing_package_is_a_reason_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "all_answers", partial(of_tiny, "linear"))
    monkeypatch.setattr(type(counters["thop"]), "lacking", lambda _: "thop is not installed: pip install thop")
    (row,) = (row for row in audit("tiny:linear")["rows"] if row["counter"] == "thop")
    assert row["reason"] == "thop is not installed: pip install thop"
    assert row["macs"] is row["number"] is row["difference"] is row["seconds"] is None


@pytest.mark.parametrize("name", ["ptflops", "ptflops.aten", "thop", "calflops", "torchinfo", "deepspeed", "fvcore"])
def test_each_counter_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert f"pip install {name.partition('.')[0]}" in str(counters[name].lacking())


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the program that is run as the worker."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(children, "MODULE", "stand_in")
    return (tmp_path / "stand_in.py").write_text


def test_a_counter_that_dies_keeps_what_it_said(stand_in: Any) -> None:
    stand_in("""
import os, sys
print('{"step": "baseline", "macs": 5}', flush=True)
print("out of luck", file=sys.stderr, flush=True)
os.abort()
""")
    baseline, after = children.Children().ask({}, 30)
    assert baseline["macs"] == 5
    assert after["reason"].startswith("its process ended by SIGABRT: ") and after["step"] == "what came next"


def test_a_counter_that_hangs_is_given_up_and_ended(stand_in: Any) -> None:
    stand_in("import threading; threading.Event().wait()")
    (answer,) = children.Children().ask({}, 0.5)
    assert answer == {"step": "baseline", "reason": "no count within 0.5 seconds"}


def test_ctrl_c_ends_the_children(stand_in: Any, tmp_path: Path) -> None:
    started = tmp_path / "started"
    stand_in(f"""
import json, os, pathlib, sys, time
print("{{}}", flush=True)
if json.loads(sys.argv[1])["counter"] == "slow":
    pathlib.Path({str(tmp_path)!r}, "pid").write_text(str(os.getpid()))
    pathlib.Path({str(tmp_path)!r}, "pid").rename({str(started)!r})
    time.sleep(600)
""")
    keys = [("quick", "device"), ("slow", "device"), ("never", "device")]
    with pytest.raises(KeyboardInterrupt), closing(children.all_answers(keys, "", None, LIMIT)) as answers:
        assert next(answers)[1] == [{}]
        until = time.monotonic() + LIMIT
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.01)
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_source_that_cannot_be_opened_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(keys: Any, source: str, image: Any, limit: float) -> Any:
        yield ("exact", "meta"), list(worker.answers("exact", "meta", source, image))

    monkeypatch.setattr(children, "all_answers", refused)
    with pytest.raises(Refusal, match="tiny has no 'nothing'"):
        audit("tiny:nothing")


@pytest.mark.parametrize("image", ["0", "12x", "a", "224x224x3"])
def test_an_image_of_no_size_is_refused(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "vit_b_16", "--image", image]) == 2
    assert "is no size in pixels; expected such as 224" in capsys.readouterr().err
