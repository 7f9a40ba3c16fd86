"""What a user types wrong is answered in one line, with exit code 2 and no traceback."""

from __future__ import annotations

import json

import pytest

import analysis.__main__
import benchmarks.__main__


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--profile", "huge"], "unknown profile 'huge'; known: smoke, quick, full"),
        (["--sweep", "nothing"], "unknown sweep 'nothing'; known: backend, batch"),
        (["--device", "tpu"], "unknown device 'tpu'; known: cpu, cuda"),
    ],
)
def test_bench_refuses_in_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.__main__.main([*words, "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_bench_refuses_cuda_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert benchmarks.__main__.main(["--device", "cuda"]) == 2
    assert "torch sees no CUDA device" in capsys.readouterr().err


def test_a_dry_run_lists_the_cases_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--profile", "smoke", "--device", "cpu", "--sweep", "batch", "--dry-run", "--json"]
    assert benchmarks.__main__.main(words) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cases"]["global.sdpa.b2.1+14x14.d192.h3.float32.cpu.layer.inference"] == ["batch"]


@pytest.mark.parametrize(
    "words",
    [
        ["report", "/nowhere"],
        ["verify", "--sweep", "nothing"],
        ["verify", "--profile", "x"],
        ["verify", "--device", "gpu"],
    ],
)
def test_analysis_refuses_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert analysis.__main__.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_verify_explains_every_count_of_the_smoke_cases(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fvcore")
    assert analysis.__main__.main(["verify", "--profile", "smoke", "--device", "cpu", "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)
    assert verdicts and all(verdict["fault"] is None for verdict in verdicts)
    sdpa = next(v for v in verdicts if v["id"] == "global.sdpa.b1.1+14x14.d192.h3.float32.cpu.core.inference")
    assert sdpa["closed"] == 2 * 197**2 * 192
    assert sdpa["counts"]["dispatch"]["macs"] == sdpa["counts"]["dispatch.meta"]["macs"] == sdpa["closed"]
    assert sdpa["counts"]["fvcore"]["macs"] == 0
    reason = "fvcore has no handle for scaled_dot_product_attention: -2N^2 D"
    assert sdpa["counts"]["fvcore"]["differences"] == {reason: -sdpa["closed"]}


def test_verify_ends_non_zero_where_a_closed_form_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vitbench.operators.global_ import Global

    right = Global.around
    monkeypatch.setattr(Global, "around", lambda self, shape: right(self, shape).times(2))
    assert analysis.__main__.main(["verify", "--profile", "smoke", "--device", "cpu", "--sweep", "batch"]) == 1
    assert "that nothing explains" in capsys.readouterr().err
