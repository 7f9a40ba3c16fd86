"""calibration.json in the folder of a run: what `vitbench calibrate` wrote there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitbench.cpu import NAMES, Constants
from vitbench.refusal import Refusal

FILE = "calibration.json"
PROCESSOR = ("cpu", "cores", "threads")  # of an environment: what a calibration holds for

Calibration = dict[str, Any]  # as docs/json.md says


def read(folder: Path) -> Calibration:
    """What calibrate wrote there. Raises Refusal where it is missing or damaged."""
    try:
        found: Calibration = json.loads((folder / FILE).read_bytes())
        if not all(value > 0 for value in (*constants_of(found).values(), *predicted_in(found).values())):
            raise ValueError
        found["log_error_quantiles"].items()
    except FileNotFoundError:
        raise Refusal(f"{folder} holds no {FILE}; expected one: vitbench calibrate {folder}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(f"{folder / FILE} is damaged; write it anew: vitbench calibrate {folder}") from None
    return found


def newest_of(results: Path, environment: Mapping[str, Any]) -> Calibration | None:
    """The newest of the runs there, or of those in reference/, of that cpu with as many cores and threads; None if
    there is none. Raises Refusal for one that is damaged.
    """
    for folder in (results, results / "reference"):
        for path in sorted(folder.glob(f"*/{FILE}"), key=lambda path: -path.stat().st_mtime):
            found = read(path.parent)
            own = found.get("environment") or {}
            if all(own.get(key) == environment[key] for key in PROCESSOR if key in environment):
                return found
    return None


def constants_of(calibration: Calibration) -> Constants:
    """As cpu.seconds takes them."""
    values = {one["name"]: float(one["value"]) for one in calibration["constants"]}
    return {name: values[name] for name in NAMES}


def predicted_in(calibration: Calibration) -> dict[str, float]:
    """Seconds by case id, each predicted from cases that share no sweep with it."""
    return {one["id"]: float(one["predicted"]) for one in calibration["times"] if one["predicted"] is not None}
