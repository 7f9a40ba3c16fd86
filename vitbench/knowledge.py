"""What is known of a card's times: the constants of the time model, where they come from, and how far off they were.

fitted.json is written by `make validate` from published speeds. An interval is what nine of ten held-out times stayed
within, as factors of the predicted seconds; where nothing like it was held out, there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any, NamedTuple

from vitbench.calibrate.document import Calibration, constants_of
from vitbench.gpu import DATASHEET, Constants

FITTED = "fitted.json"
SCHEMA = 1
LEVELS = ("datasheet", "fitted", "calibrated")
HELD = "amp", "inference"  # dtype and mode of what was published
KINDS = ("no attention", "attention")
LEAST = 20  # held-out times that earn an interval; fewer tell nothing of one in ten
SHARES = (0.05, 0.95)


class Knowledge(NamedTuple):
    """level: datasheet alone, fitted on published times, or calibrated on this machine. interval: factors of the
    seconds, or None, and then `words` says why. words: a sentence on constants and interval.
    """

    level: str
    constants: Constants
    interval: tuple[float, float] | None
    words: str


def known(
    card: str,
    *,
    compiled: bool = False,
    family: str | None = None,
    attention: bool = True,
    lacking: str | None = None,
) -> Knowledge:
    """card: of `devices`. family: of timm; None: another. attention: whether the program has some. lacking: why times
    like these were not published, if so.
    """
    values = _fitted()
    found = next((one for one in values["constants"] if one["compiled"] is compiled), None)
    if found is None:
        return Knowledge("datasheet", DATASHEET, None, "the datasheet alone; no interval: nothing was held against it")
    cards = sorted({one["card"] for one in values["tables"] if one["name"] in found["tables"]})
    words = f"constants fitted on published times of {', '.join(cards)}"
    if lacking:
        return Knowledge("fitted", found["values"], None, f"{words}; no interval: {lacking}")
    left_out = "family" if card in cards else "card"
    for kind, of in ((family, f"models like {family}"), (KINDS[attention], f"models with {KINDS[attention]}")):
        interval = values["intervals"].get(f"{'compiled' if compiled else 'eager'} {left_out} {kind}")
        if interval:
            told = f"nine of ten {of}, their {left_out} left out, took {interval[0]:.2f} to {interval[1]:.2f} times it"
            return Knowledge("fitted", found["values"], tuple(interval), f"{words}; {told}")
    return Knowledge("fitted", found["values"], None, f"{words}; no interval: no other card was held out")


def calibrated(calibration: Calibration) -> Knowledge:
    """Of this machine's CPU, by a calibration.json."""
    low, high = (exp(calibration["log_error_quantiles"][share]) for share in ("0.05", "0.95"))
    told = (
        f"constants calibrated on this machine; nine of ten times of other sweeps took {low:.2f} to {high:.2f} times it"
    )
    return Knowledge("calibrated", constants_of(calibration), (low, high), told)


def fitted_to() -> set[str]:
    """Names of the tables that the constants were fitted to."""
    return {one["name"] for one in _fitted()["tables"]}


@cache
def _fitted() -> Any:
    try:
        found = json.loads((files("vitbench") / FITTED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"tables": [], "constants": [], "intervals": {}}
    return found


def earned(validation: Mapping[str, Any]) -> dict[str, Any]:
    """What fitted.json holds, of a validation.json: its constants, and the intervals that they earned."""
    tables = {one["name"]: one for one in validation["tables"]}
    fitted = {name: one["compiled"] for one in validation["constants"] for name in one["tables"]}
    ratios: dict[str, list[float]] = {}
    for row in validation["rows"]:
        if row["table"] not in fitted:
            continue
        way = "compiled" if fitted[row["table"]] else "eager"
        for left_out, seconds in row["predicted"].items():
            if seconds is not None:
                for kind in (row["family"], KINDS[row["attention"]]):
                    ratios.setdefault(f"{way} {left_out} {kind}", []).append(row["seconds"] / seconds)
    return {
        "schema": SCHEMA,
        "tables": [{"name": name, "card": tables[name]["card"]} for name in fitted],
        "constants": validation["constants"],
        "intervals": {name: _ends(some) for name, some in sorted(ratios.items()) if len(some) >= LEAST},
    }


def _ends(ratios: Sequence[float]) -> list[float]:
    ordered = sorted(ratios)
    return [round(ordered[round(share * (len(ordered) - 1))], 4) for share in SHARES]
