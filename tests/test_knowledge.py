"""What is known of a card: constants and intervals only where they were earned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import documents
import pytest

from vitbench import cpu, knowledge
from vitbench.gpu import CONSTANTS, DATASHEET
from vitbench.knowledge import FITTED, LEAST, LEVELS, calibrated, earned, fitted_to, known

VALUES = {one.name: one.start for one in CONSTANTS}


def row(table: str, family: str, ratio: float, *, card: float | None, attention: bool = True) -> dict[str, Any]:
    """ratio, card: measured over predicted, the family and the card left out."""
    predicted = {"family": 1 / ratio, "card": None if card is None else 1 / card}
    return {"table": table, "family": family, "attention": attention, "seconds": 1.0, "predicted": predicted}


def rows(table: str, card: float | None) -> list[dict[str, Any]]:
    """41 of vit, measured from 0.8 to 1.2 times what is predicted; a few of others."""
    return [
        *(row(table, "vision_transformer", 0.8 + 0.01 * n, card=card) for n in range(41)),
        *(row(table, "levit", 3.0, card=card) for _ in range(2)),
        *(row(table, "resnet", 1.5, card=card, attention=False) for _ in range(LEAST)),
        *(row(table, "vgg", 9.0, card=card, attention=False) for _ in range(LEAST - 1)),
    ]


VALIDATION = {
    "tables": [
        {"name": "slow.csv", "card": "rtx3090", "compiled": False},
        {"name": "old.csv", "card": "rtx3090", "compiled": False},
        {"name": "fast.csv", "card": "rtx4090", "compiled": True},
    ],
    "constants": [
        {"compiled": False, "tables": ["slow.csv"], "values": VALUES},
        {"compiled": True, "tables": ["fast.csv"], "values": VALUES},
    ],
    "rows": [
        *rows("slow.csv", 2.0),
        *(row("old.csv", "vision_transformer", 77.0, card=77.0) for _ in range(99)),  # only scored
        *rows("fast.csv", None),
    ],
}


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What that validation earns, in the place of fitted.json."""
    found = earned(VALIDATION)
    monkeypatch.setattr(knowledge, "_fitted", lambda: found)
    return found


def test_intervals_are_quantiles_of_what_was_held_out(fitted: dict[str, Any]) -> None:
    assert set(fitted) == documents.keys("vitbench/fitted.json")
    assert fitted["tables"] == [{"name": "slow.csv", "card": "rtx3090"}, {"name": "fast.csv", "card": "rtx4090"}]
    intervals = fitted["intervals"]
    assert intervals["eager family vision_transformer"] == [0.82, 1.18]
    assert intervals["eager family attention"] == [0.82, 1.2]  # with those of levit above
    assert intervals["eager card attention"] == [2.0, 2.0]
    assert intervals["eager family resnet"] == [1.5, 1.5] and intervals["eager family no attention"] == [1.5, 9.0]
    assert "compiled family attention" in intervals
    assert not [name for name in intervals if name.startswith("compiled card") or name.endswith(("levit", "vgg"))]


def test_a_fitted_card_has_the_interval_of_families_left_out(fitted: dict[str, Any]) -> None:
    found = known("rtx3090", family="vision_transformer")
    assert (found.level, found.constants, found.interval) == ("fitted", VALUES, (0.82, 1.18))
    assert found.words == (
        "constants fitted on published times of rtx3090; nine of ten models like vision_transformer, their family left "
        "out, took 0.82 to 1.18 times it"
    )
    assert known("rtx3090", family="vision_transformer", compiled=True).words.startswith(
        "constants fitted on published times of rtx4090; no interval"  # it is another card to these
    )


def test_another_card_has_the_interval_of_cards_left_out(fitted: dict[str, Any]) -> None:
    found = known("h100", family="vision_transformer")
    assert found.level == "fitted" and found.interval == (2.0, 2.0) and "their card left out" in found.words


def test_a_family_of_which_few_were_held_out_has_that_of_all_with_attention(fitted: dict[str, Any]) -> None:
    found = known("rtx3090", family="levit")
    assert found.interval == (0.82, 1.2) and "nine of ten models with attention, their family" in found.words


@pytest.mark.parametrize("family", ["vgg", "unheard_of", None])
def test_one_without_attention_never_has_the_interval_of_those_with(family: str | None, fitted: dict[str, Any]) -> None:
    found = known("rtx3090", family=family, attention=False)
    assert found.interval == (1.5, 9.0) and "nine of ten models with no attention" in found.words
    del fitted["intervals"]["eager family no attention"]
    assert known("rtx3090", family=family, attention=False).interval is None


def test_what_was_not_published_has_no_interval(fitted: dict[str, Any]) -> None:
    found = known("rtx3090", family="vision_transformer", lacking="published are amp inference alone")
    assert (found.level, found.constants, found.interval) == ("fitted", VALUES, None)
    assert found.words.endswith("no interval: published are amp inference alone")


def test_constants_are_known_by_the_tables_that_they_were_fitted_to(fitted: dict[str, Any]) -> None:
    assert fitted_to() == {"slow.csv", "fast.csv"}


def test_a_calibrated_cpu_has_the_interval_of_its_halves() -> None:
    constants = [{"name": name, "value": 1.0} for name in cpu.NAMES]
    calibration: Any = {"constants": constants, "log_error_quantiles": {"0.05": -0.1, "0.95": 0.2}}
    found = calibrated(calibration)
    assert found.level == "calibrated" and found.constants == dict.fromkeys(cpu.NAMES, 1.0)
    assert found.interval == (pytest.approx(0.9048, abs=1e-4), pytest.approx(1.2214, abs=1e-4))


def test_no_other_card_held_out_gives_none_to_another_card(fitted: dict[str, Any]) -> None:
    found = known("h100", family="vision_transformer", compiled=True)
    assert found.interval is None and found.words.endswith("no interval: no other card was held out")


def test_without_fitted_constants_there_is_the_datasheet_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(knowledge, "FITTED", str(tmp_path / FITTED))
    monkeypatch.setattr(knowledge, "_fitted", knowledge._fitted.__wrapped__)
    found = known("h100", family="vision_transformer")
    assert (found.level, found.constants, found.interval) == ("datasheet", DATASHEET, None)
    assert found.level in LEVELS and "no interval" in found.words


def test_what_is_shipped_is_as_documented_and_within_plausible_ranges() -> None:
    path = Path(knowledge.__file__).with_name(FITTED)
    found = json.loads(path.read_text())
    assert set(found) == documents.keys("vitbench/fitted.json") and found["schema"] == knowledge.SCHEMA == 1
    for fit in found["constants"]:
        assert all(one.low <= fit["values"][one.name] <= one.high for one in CONSTANTS)
    assert all(0.2 < low < high < 5 for low, high in found["intervals"].values())
