"""`vitbench scale` as people meet it: page, CSV, figure, refusals; at once for what is on paper."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from vitbench.cli import main
from vitbench.refusal import Refusal
from vitbench.scale.growth import Range, parse_range, scale

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_names_law_crossing_and_skipped_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "vit_b_16", "--image", "224:256:8"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    for words in (
        "total 18,432 N^2 + 85,524,480 N + 178,176",
        "N (S / 16)^2 + 1: keys of every softmax attention",
        "N = 4,640.0, images of 1104 pixels a side N = 2320 + sqrt(48441687)/3, exactly",
        "sizes; 2 skipped, which do not divide into whole tokens",
        "224 197 17.564 16.849 0.715 4.1% 0",
    ):
        assert words in page


def test_the_page_of_windows_says_how_much_is_padded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "swin_t"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "padding at 448 of 457 sizes, at most 45.7% over the law, at 228 pixels" in page
    assert "pairs never reach half of all MACs; their share tends to 3.1%" in page
    assert "1024 65,536 98.411 95.192 3.219 3.3% +4.9%" in page


def test_csv_has_a_row_for_each_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "vit_b_16", "--image", "224:256", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    macs = [18_432 * n * n + 85_524_480 * n + 178_176 for n in (197, 226, 257)]
    assert [(int(row["image"]), int(row["macs"])) for row in rows] == list(zip((224, 240, 256), macs, strict=True))


def test_the_figure_has_units_the_crossing_and_the_padding(tmp_path: Path) -> None:
    from vitbench.scale import figure

    vit = figure.draw(scale("vit_b_16", Range(224, 2048))).axes
    assert [axes.get_ylabel() for axes in vit] == ["GMACs (1 MAC = 2 FLOPs)", "share of data x data in all MACs"]
    assert all(axes.get_xlabel() == "side of the square image S (pixels)" for axes in vit)
    assert [text.get_text() for axes in vit for text in axes.texts] == ["half at 1104"] * 2
    swin = scale("swin_t", Range(224, 512))
    assert [axes.get_ylabel() for axes in figure.draw(swin).axes][2:] == ["MACs over the law"]
    figure.write(swin, str(tmp_path / "swin.png"))
    assert (tmp_path / "swin.png").read_bytes().startswith(b"\x89PNG")


REFUSED = {
    "an unknown model": (["no_such_model"], "unknown model 'no_such_model'"),
    "no size of whole patches": (["vit_b_16", "--image", "225:230"], "sizes 225:230: none is a multiple of the 16"),
    "sizes that are none": (["vit_b_16", "--image", "224x224"], "sizes '224x224' are none of A, A:B and A:B:STEP"),
    "sizes backwards": (["vit_b_16", "--image", "448:224"], "sizes '448:224' end before they begin; expected 224:448"),
    "no images": (["vit_b_16", "--batch", "0"], "batch 0 is less than 1"),
    "an unknown format": (["vit_b_16", "--image", "224", "--figure", "a.bmp"], "figure 'a.bmp' is in no known format"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_requests_are_refused_in_one_line(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = REFUSED[what]
    assert main(["scale", *arguments]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"vitbench: {message}") and told.err.count("\n") == 1 and told.out == ""


def test_ranges_are_read_as_written() -> None:
    assert [str(parse_range(text)) for text in ("224", "224:448", "224:448:32")] == ["224", "224:448", "224:448:32"]
    for text in ("", "0", "224:", "-1:5", "1:2:3:4", "224:448:0"):
        with pytest.raises(Refusal):
            parse_range(text)


def test_the_suites_own_models_need_no_torch_and_no_matplotlib() -> None:
    code = """
import sys
from vitbench.cli import main
assert main(["scale", "swin_t"]) == 0 == main(["scale", "vit_b_16", "--json"])
print(*sorted({"torch", "numpy", "pandas", "matplotlib", "timm"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.split() == []
