"""`vitbench scale`: laws are exact or are not claimed, and what a size wastes is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import documents
import pytest

from vitbench.cli import main
from vitbench.scale import document
from vitbench.scale.growth import Range, Scale, scale
from vitbench.scale.polynomial import fit, polynomial, rises, through

D = 768  # of ViT-B
OWN = '''
import torch
from torch import nn

class Tiny(nn.Module):
    """Patches of 16 pixels; then rows of the grid attend, or something else that depends on the number of patches."""
    def __init__(self, more):
        super().__init__()
        self.patches, self.more = nn.Conv2d(3, 4, 16, 16), more
    def forward(self, images):
        if images.shape[-1] == 64:
            raise ValueError("sixty-four, never")
        grid = self.patches(images)
        return self.more(grid)

def rows(grid):
    q = grid.permute(0, 2, 3, 1)
    return (q @ q.transpose(-1, -2)).softmax(-1) @ q

def bits(grid):
    return [grid.mean((2, 3)) @ torch.ones(4, 4, device=grid.device) for _ in range(grid.shape[-1].bit_length())]

def late(grid):
    return [grid.mean((2, 3)) @ torch.ones(4, 4, device=grid.device) for _ in range(1 + (grid.shape[-1] > 110))]

def once(grid):
    return [grid.mean((2, 3)) @ torch.ones(4, 4, device=grid.device) for _ in range(1 + (grid.shape[-1] == 18))]

def fickle(): return Tiny(once)
def axial(): return Tiny(rows)
def erratic(): return Tiny(bits)
def bending(): return Tiny(late)
def given(): return Tiny(rows), (torch.zeros(1, 3, 32, 32),)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    (tmp_path / "growing_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "growing_models:{}".format


def laws(found: Scale) -> dict[str, Any]:
    assert found.law
    return {part: list(map(int, one.coefficients)) for part, one in found.law.parts.items()}


def test_a_polynomial_that_is_not_met_at_two_more_points_is_not_claimed() -> None:
    square = [(x, 3 * x * x + 1) for x in range(5)]
    assert fit(square, 2) == polynomial([1, 0, 3])
    assert fit(square[:4], 2) is None and fit([*square[:4], (4, 50)], 2) is None
    assert through([(2, 1), (5, 3)])(Fraction(7, 2)) == 2
    assert polynomial([-1, Fraction(1, 3), 2000]).written("N") == "2,000 N^2 + 1/3 N - 1"


def test_a_root_is_exact_and_one_of_falling_is_none() -> None:
    assert rises(polynomial([-2, 0, 1]), 0) == ("sqrt(2)", pytest.approx(2**0.5))
    assert rises(polynomial([2, 0, -1]), 0) is None and rises(polynomial([-2, 0, 1]), 2) is None
    assert rises(polynomial([1, 0, 1]), 0) is None and rises(polynomial([4, -4, 1]), 0) is None


def test_vit_is_the_polynomial_of_its_paper() -> None:
    found = scale("vit_b_16", Range(224, 2048))
    assert found.law and found.half and len(found.sizes) == 115
    blocks = {"linear": [1000 * D - 3 * 16**2 * D, 12 * 12 * D**2 + 3 * 16**2 * D], "pairs": [0, 0, 12 * 2 * D]}
    assert laws(found) == {**blocks, "weights": []}
    assert (found.law.tokens.pixels, found.law.tokens.prefix, found.law.period) == (16, 1, 16)
    assert not {*found.law.fitted} & {*found.law.verified} and len(found.law.verified) == 112
    a, b, c = Fraction(blocks["linear"][1]), blocks["pairs"][2], blocks["linear"][0]
    assert found.half.x == pytest.approx(float((a + (a * a + 4 * b * c) ** 0.5) / (2 * b)), rel=1e-12)
    shares = {point.image: point.pairs / point.macs for point in found.sizes}
    assert found.half.image == 1104 and shares[1088] < 0.5 <= shares[1104]


def test_swin_pads_over_the_law_of_multiples_of_its_windows() -> None:
    found = scale("swin_t", Range(1024, 1024))
    assert found.law and found.half
    assert (found.law.period, found.law.macs(1024), found.sizes[0].macs) == (224, 93_828_397_056, 98_410_888_320)
    assert (found.half.image, found.half.limit) == (None, Fraction(133, 4261))
    line = "padding costs 4,582,491,264 MACs, 4.9% over the law; none at 896 and 1120"
    assert [(one.image, one.kind, one.line) for one in found.findings] == [(1024, "padding", line)]
    assert {name: scale(name, Range(384, 384)).law.period for name in ("swin_b_384", "coatnet_0", "resnet50")} == {  # type: ignore[union-attr]
        "swin_b_384": 4 * 12 * 2**3,
        "coatnet_0": 32,
        "resnet50": 32,
    }


TABLE = "pos_embed is (1, 257, 192) here and (1, 197, 192) at 224: trained ones must be resized"
COUNTED = {"timm:vit_tiny_patch16_224": ("vit_ti_16", "table", TABLE), "torchvision:swin_t": ("swin_t", "padding", "")}


@pytest.mark.parametrize("source", COUNTED)
def test_counted_models_have_the_law_and_the_findings_of_the_paper(source: str) -> None:
    paper, kind, line = COUNTED[source]
    on_paper, counted = scale(paper, Range(240, 256)), scale(source, Range(256, 256))
    assert laws(on_paper) == laws(counted)
    assert on_paper.law and counted.law and on_paper.law.period == counted.law.period
    assert on_paper.sizes[-1].macs == counted.sizes[0].macs
    assert [one.kind for one in counted.findings if one.kind != "uncounted"] == [kind]
    assert line in counted.findings[0].line
    assert scale(paper, Range(256, 256), batch=3).sizes[0].macs == 3 * counted.sizes[0].macs


def test_rows_that_attend_have_a_law_in_the_side_and_their_own_refusals(own: Callable[[str], str]) -> None:
    found = scale(own("axial"), Range(64, 128, 16))
    assert found.law and found.half
    assert (found.law.variable, found.law.period) == ("n", 16) and laws(found)["pairs"] == [0, 0, 0, 2 * 4]
    assert found.half.image == 16 * (3 * 16**2 * 4 // (2 * 4))  # where n is features of a patch, over 2
    assert [(one.image, one.kind, one.line) for one in found.findings] == [
        (64, "refused", "ValueError: sixty-four, never")
    ]


def test_what_is_no_polynomial_is_given_no_law(own: Callable[[str], str]) -> None:
    for source, asked in ((own("erratic"), Range(32, 128)), (own("bending"), Range(224, 2016, 224))):
        found = scale(source, asked)
        assert found.law is None and found.half is None and found.sizes
        assert document.as_json(found)["law"] is None
    bent = scale(own("bending"), Range(32, 1024, 16))
    assert bent.law  # as far as it was tried


def test_a_period_that_one_size_breaks_is_given_up_for_the_one_that_holds(own: Callable[[str], str]) -> None:
    for last, period in ((272, 16), (288, 224)):
        found = scale(own("fickle"), Range(224, last, 16))
        assert found.law and found.law.period == period
        assert (240 in found.law.verified, 288 in found.law.verified) == (period == 16, False)


def test_a_window_that_shrinks_and_a_table_that_must_be_resized_are_said() -> None:
    small = {one.kind: one.line for one in scale("swin_t", Range(112, 112)).findings}
    assert small["window"] == "windows of 49 tokens are larger than the grid in 2 of 12 attentions and shrink to 16"
    assert "28,282,594 parameters, 28,288,354 at 224" in small["table"]
    assert scale("swin_t", Range(448, 448)).findings == []


def test_json_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "swin_t", "--image", "200:300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == documents.keys("vitbench scale SOURCE --json") and found["schema"] == document.SCHEMA == 1
    assert {*found["law"], *found["half"], *found["sizes"][0]} <= documents.named("vitbench scale SOURCE --json")
    assert found["law"]["total"] == [768_000, 1_431_696]
    assert set(found["law"]["tokens"]) == {"what", "pixels", "prefix"}
    row = {"image", "tokens", "macs", "linear", "pairs", "weights", "parameters", "law", "over"}
    assert set(found["sizes"][0]) == row and len(found["sizes"]) == 26
    assert found["sizes"][6]["over"] == 0.0 and all(set(one) == {"image", "kind", "line"} for one in found["findings"])
