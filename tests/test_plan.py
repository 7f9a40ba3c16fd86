"""`vitbench plan` as people meet it: page, JSON, refusals; at once, without torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import keys, named
from vitbench.cli import main
from vitbench.devices import card

ROOT = Path(__file__).resolve().parents[1]
PLAN = ["plan", "--device", "rtx4090"]


def test_json_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--latency", "20ms", "--image-max", "256", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    title = "vitbench plan --device DEVICE --json"
    assert set(found) == keys(title)
    assert set(found["rows"][0]) <= named(title)
    assert found["latency_seconds"] == 0.02 and found["memory_bytes"] == card("rtx4090").memory
    assert found["configurations"] >= found["fitting"] >= len(found["rows"]) > 0
    first = found["rows"][0]
    assert first["images_per_second"] == pytest.approx(first["batch"] / first["seconds"])


def test_the_page_has_a_command_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--latency", "20ms", "--memory", "8GB"]) == 0
    page = capsys.readouterr().out
    assert "NVIDIA GeForce RTX 4090, amp: within 20 ms a call and 8 GB, images 224 to 1024" in page
    assert "accuracy is not predicted" in page and "knowledge: " in page
    assert page.count("vitbench predict ") == 20
    assert main([*PLAN, "--family", "swin", "--image-max", "256", "--all"]) == 0
    assert "swin_t --device rtx4090 --image 256 --batch 1 --dtype amp --backend sdpa --window 8" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--latency", "10us"],
            r"no configuration of [\d,]+ fits 0.01 ms on rtx4090 .* the nearest is vit_ti_32 at 224",
        ),
        (["--memory", "1MB"], r"fits 0.001 GB on rtx4090 .* the nearest is vit_ti_\d+ at 224 .* GB \(memory\)"),
        (["--latency", "20"], "latency '20' is no amount above 0 with a unit"),
        (["--memory", "0.5B"], "memory '0.5B' is less than a byte"),
        (["--figure", ""], "figure '' is in no known format"),
        (["--memory", "8"], "memory '8' is no amount above 0 with a unit"),
        (["--family", "vit,vgg"], "unknown family 'vgg'; known: deit, swin, vit"),
        (["--image-min", "512", "--image-max", "224"], "images of 512 to 224 pixels a side; expected 64 to 4096"),
        (["--image-min", "0"], "images of 0 to 1024"),
        (["--image-min", "225", "--image-max", "226"], r"no model takes images of 225 to 226 .* \(image-min\)"),
        (["--dtype", "int8"], "unknown dtype 'int8'; known: amp"),
        (["--figure", "plan.txt"], "figure 'plan.txt' is in no known format"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLAN, *words]) == 2
    written = capsys.readouterr()
    assert not written.out and written.err.count("\n") == 1
    assert re.search(said, written.err)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "from vitbench.cli import main\nimport sys\n"
        "assert main(['plan', '--device', 'h100', '--image-max', '256', '--json']) == 0\n"
        "print(*sorted({'torch', 'pandas', 'scipy', 'matplotlib', 'sympy'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.split() == []
