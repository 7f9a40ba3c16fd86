"""Each measured time beside the one that was predicted for it without it."""

from __future__ import annotations

from math import exp

import numpy as np
import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Study, axes, color_of, log_x, log_y, studies
from vitbench.calibrate.document import FILE, Calibration, predicted_in, read

MS = 1e3  # of a second


class Predicted(Study):
    name = "predicted"
    question = "How far were the predictions from what was measured?"
    place = 90
    of_records = False  # but of the run's calibration

    def answer(self, run: Run) -> Answer | None:
        if not (run.folder / FILE).exists():
            return None
        calibration = read(run.folder)
        cases = run.cases[run.cases["seconds"].notna()].copy()
        cases["predicted"] = cases["id"].map(predicted_in(calibration))
        found = cases[cases["predicted"].notna()].copy()
        if found.empty:
            return None
        low, high = _factors(calibration)
        found["over"] = found["seconds"] / found["predicted"]
        found["within"] = found["over"].between(low, high)
        found = found.iloc[np.argsort(-np.abs(np.log(found["over"].to_numpy())))]
        figure, (times, ratios) = axes(2, 5.6)
        ends = np.array([found["predicted"].min() / 1.5, found["predicted"].max() * 1.5]) * MS
        times.fill_between(ends, low * ends, high * ends, color="k", alpha=0.07, lw=0, label="interval, 9 of 10")
        ratios.axhspan(low, high, color="k", alpha=0.07, lw=0)
        times.plot(ends, ends, color="k", lw=0.8)
        ratios.axhline(1, color="k", lw=0.8)
        for name, color in color_of(sorted(found["backend"].unique())).items():
            of = found[found["backend"] == name]
            told = of["predicted"] * MS
            times.plot(told, of["seconds"] * MS, "o", ms=4, alpha=0.75, color=color, label=name)
            ratios.plot(told, of["over"], "o", ms=4, alpha=0.75, color=color)
        for panel in (times, ratios):
            log_x(panel)
            panel.set_xlabel("predicted milliseconds")
        log_y(times)
        times.set_ylabel("measured milliseconds")
        ratios.set_ylabel("measured over predicted")
        times.legend(fontsize=8, frameon=False)
        return Answer(_sentence(found, len(cases), low, high), _table(found, low, high), figure)


def _factors(calibration: Calibration) -> tuple[float, float]:
    """Of the predicted seconds, between which nine of ten times lie."""
    quantiles = calibration["log_error_quantiles"]
    return exp(quantiles["0.05"]), exp(quantiles["0.95"])


def _sentence(found: pd.DataFrame, measured: int, low: float, high: float) -> str:
    errors = (found["predicted"] / found["seconds"] - 1).abs()
    worst = found.iloc[0]
    rest = measured - len(found)
    without = f" {rest} measured cases have no prediction (other dtypes, compiled, or too few others)." if rest else ""
    return (
        f"Each of {len(found)} cases was predicted from cases of other sweeps: the median error is "
        f"{errors.median():.1%}, the 90th percentile {errors.quantile(0.9):.1%}; {found['within'].mean():.0%} lie "
        f"within {low:.2f} to {high:.2f} times their prediction, which nine of ten should. Worst: {worst['id']}, "
        f"{text.number(worst['over'])} times as long.{without}"
    )


def _table(found: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """Worst first."""
    rows = [
        {
            "case": row["id"],
            "predicted": text.seconds(row["predicted"], low * row["predicted"], high * row["predicted"]),
            "measured": text.seconds(row["seconds"], row["low"], row["high"]),
            "measured over predicted": text.number(row["over"]),
            "within": "yes" if row["within"] else "no",
        }
        for _, row in found.iterrows()
    ]
    return pd.DataFrame(rows)


studies.add(Predicted())
