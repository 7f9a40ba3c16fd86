"""The study of predictions: each case of a calibrated run beside its own, worst first."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.load import Run
from analysis.study import Answer, studies
from vitbench.calibrate.document import FILE
from vitbench.cpu import CONSTANTS

CASES = pd.DataFrame(
    {
        "id": ["exact", "slow", "off", "unknown", "failed"],
        "backend": ["sdpa", "sdpa", "naive", "naive", "sdpa"],
        "seconds": [0.010, 0.011, 0.020, 0.030, None],
        "low": [0.009, 0.010, 0.019, 0.029, None],
        "high": [0.011, 0.012, 0.021, 0.031, None],
    }
)
PREDICTED = {"exact": 0.010, "slow": 0.010, "off": 0.010, "unknown": None, "failed": 0.01}


def answered(folder: Path, predicted: dict[str, Any]) -> Answer | None:
    content = {
        "constants": [{"name": one.name, "value": one.start} for one in CONSTANTS],
        "log_error_quantiles": {"0.05": log(0.8), "0.95": log(1.25)},
        "times": [{"id": id_, "seconds": 1, "predicted": value} for id_, value in predicted.items()],
    }
    (folder / FILE).write_text(json.dumps(content))
    return studies["predicted"].answer(Run(folder, CASES, {}, {}, {}))


def test_every_predicted_case_stands_beside_its_time_worst_first(tmp_path: Path) -> None:
    answer = answered(tmp_path, PREDICTED)
    assert answer is not None
    assert list(answer.table["case"]) == ["off", "slow", "exact"]
    assert list(answer.table["within"]) == ["no", "yes", "yes"]
    assert answer.table["predicted"][0] == "10.0 ms (8.00 to 12.5)"
    assert "Each of 3 cases" in answer.sentence and "67% lie within 0.80 to 1.25" in answer.sentence
    assert "Worst: off, 2.00 times as long. 1 measured cases have no prediction" in answer.sentence
    assert [panel.get_xlabel() for panel in answer.figure.axes] == ["predicted milliseconds"] * 2


def test_a_run_without_calibration_or_predictions_has_no_answer(tmp_path: Path) -> None:
    assert studies["predicted"].answer(Run(tmp_path, CASES, {}, {}, {})) is None
    assert answered(tmp_path, {"exact": None}) is None
