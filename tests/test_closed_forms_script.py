"""python -m benchmarks.closed_forms: its numbers are those of the scalar form, and a wrong one is found."""

from __future__ import annotations

import json

import pytest

from benchmarks import closed_forms
from vitbench.cost import Cost
from vitbench.model import Model, models

COUNT = 300
measure = closed_forms.measure


def test_each_number_comes_with_its_samples() -> None:
    found = measure(rounds=3, count=COUNT, calls=2)
    assert [one.macs for one in found[:2]] == [17_563_828_224, 4_490_566_656]
    shapes, model = closed_forms.configurations(COUNT), models["vit_b_16"].model
    assert found[2].macs == closed_forms.macs_of_all(model, shapes).sum()
    for one in found:
        times = one.to_dict()
        assert len(times["samples"]) == 3
        assert 0 < times["least"] <= times["quartiles"][0] <= times["median"] <= times["quartiles"][1]


def test_blocks_are_those_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, model = closed_forms.configurations(COUNT), models["vit_b_16"].model
    whole = closed_forms.macs_of_all(model, shapes)
    monkeypatch.setattr(closed_forms, "BLOCK", 64)
    assert (closed_forms.macs_of_all(model, shapes) == whole).all()
    assert not (shapes.dim % shapes.heads).any()


def test_a_wrong_row_is_found() -> None:
    shapes, model = closed_forms.configurations(COUNT), models["vit_b_16"].model
    found = closed_forms.macs_of_all(model, shapes)
    assert closed_forms.refused(model, shapes, found) is None
    found[COUNT // 2] += 1
    assert "the forms of arrays and integers differ" in str(closed_forms.refused(model, shapes, found))


def test_a_block_counted_wrongly_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(closed_forms, "measure", lambda: measure(rounds=2, count=COUNT, calls=1))
    monkeypatch.setattr("sys.argv", ["closed_forms", "--json"])
    assert closed_forms.main() == 0
    assert [one["what"] for one in json.loads(capsys.readouterr().out)] == ["vit_b_16", "swin_t", f"{COUNT} of vit16"]
    monkeypatch.setattr(Model, "around", lambda self, shape: Cost({"mlp": 1}))
    assert closed_forms.main() == 1
    assert "MACs" in capsys.readouterr().err
