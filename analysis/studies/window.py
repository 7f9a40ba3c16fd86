"""When windows beat global attention: by MACs, by the time that a calibration of the machine predicts, and measured."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import (
    SIDES,
    WORK,
    Answer,
    Curves,
    Row,
    Study,
    asked_by,
    bars,
    color_of,
    curves,
    log_y,
    mark_x,
    panels,
    shape,
    studies,
)
from vitbench.calibrate.document import FILE, predicted_in, read
from vitbench.interval import ratio

SAME = [name for name in WORK if name not in ("operator", "scope")]
COMPARED = ("by_pass", "low", "high", "macs", "told")


class Window(Study):
    name = "window"
    question = "When do windows beat global attention, predicted and measured?"
    place = 50

    def answer(self, run: Run) -> Answer | None:
        found = against_global(run)
        if not found:
            return None
        figure, drawn = panels(found, _setting, 5.6)
        for panel, chosen in drawn:
            colors = color_of([row["operator"] for row, _ in chosen])
            for row, both in chosen:
                color = colors[row["operator"]]
                ratios = both["measured"], both["low_ratio"], both["high_ratio"]
                bars(panel, both["tokens"], *ratios, row["operator"], color)
                panel.plot(both["tokens"], both["by_macs"], "--", lw=1, color=color)
            panel.axhline(1, color="k", lw=0.8)
            mark_x(panel, [size for _, both in chosen for size in both["tokens"]])
            log_y(panel)
            panel.set(xlabel="tokens N", ylabel="window / global")
            panel.legend(fontsize=8, frameon=False)
        table = pd.DataFrame([_crossing(row, both) for row, both in found])
        return Answer(_sentence(found), table, figure)


def against_global(run: Run) -> Curves:
    """Each window on its grids, beside the fastest global attention there.

    measured, low_ratio, high_ratio: its time over that of global attention, pass by pass. by_macs: its MACs over those.
    by_model: the same of times predicted from cases of other sweeps; NaN without a calibration of the run.
    """
    told = predicted_in(read(run.folder)) if (run.folder / FILE).exists() else {}
    cases = run.cases.assign(told=pd.to_numeric(run.cases["id"].map(told)))
    measured = asked_by(cases, "window", scope="layer")
    whole = measured[measured["operator"] == "global"].sort_values("seconds")
    fastest = whole.groupby(SAME, as_index=False).first()[[*SAME, *COMPARED, "backend"]]
    windows = curves(measured[measured["operator"] != "global"], SIDES)
    return [(row, both) for row, curve in windows if len(both := _against(curve, fastest))]


def _against(curve: pd.DataFrame, against: pd.DataFrame) -> pd.DataFrame:
    both = curve.merge(against, on=SAME, suffixes=("", "_global"))
    ratios = [ratio(row["by_pass"], row["by_pass_global"]) for _, row in both.iterrows()]
    measured = pd.DataFrame(ratios, columns=["measured", "low_ratio", "high_ratio"])
    return both.join(measured).assign(
        by_macs=both["macs"] / both["macs_global"], by_model=both["told"] / both["told_global"]
    )


def _setting(row: Row) -> str:
    cut = "shifted" if "-shift" in row["operator"] else "unshifted"
    return f"{cut}, {row['backend']}, {shape(row)}\npoints seconds, dashes MACs"


def _sentence(found: list[tuple[Row, pd.DataFrame]]) -> str:
    row, both = next((pair for pair in found if pair[0]["operator"] == "window7"), found[0])
    last = both.iloc[-1]
    return (
        f"{row['operator']} ({row['backend']}, {shape(row)}) needs fewer MACs than global attention "
        f"({last['backend_global']}) from "
        f"N = {_first(both, 'by_macs')} and less time from N = {_first(both, 'measured')} of the grids measured; "
        f"at N = {last['tokens']} global "
        f"attention takes {text.number(1 / last['measured'])} times its time and {text.number(1 / last['by_macs'])} "
        f"times its MACs."
    )


def _first(both: pd.DataFrame, column: str) -> str:
    """The smallest grid from which on the ratio stays below 1."""
    stays = (both[column] < 1)[::-1].cummin()[::-1]
    return str(both["tokens"][stays].iloc[0]) if stays.any() else f"more than {both['tokens'].iloc[-1]}"


def _crossing(row: Row, both: pd.DataFrame) -> dict[str, object]:
    last, model = both.iloc[-1], {}
    if both["by_model"].notna().any():
        low, high = crossing_ends(both)
        ends = f"{_number(both, low)} to {_number(both, high)}"
        model = {"its interval": ends, "predicted from N": _number(both, crossing(both, "by_model"))}
    return {
        "operator": row["operator"],
        "backend": f"{row['backend']}, against global {last['backend_global']}",
        "shape": shape(row),
        "fewer MACs from N": _number(both, crossing(both, "by_macs")),
        "less time from N": _number(both, crossing(both, "measured")),
        **model,
        "largest N": last["tokens"],
        "MACs there": text.ratio(last["by_macs"]),
        "time there": text.ratio(last["measured"], last["low_ratio"], last["high_ratio"]),
    }


def crossing(both: pd.DataFrame, column: str) -> float | None:
    """Where the ratio falls through 1 for good, between the grids that enclose it (both scales logarithmic).

    In tokens; 0 if it is below 1 from the smallest grid on, inf if it is not on the largest, None if it is not known.
    """
    both = both[both[column].notna()]
    if both.empty:
        return None
    ratio, tokens = np.log(both[column].to_numpy(float)), np.log(both["tokens"].to_numpy(float))
    not_below = np.flatnonzero(ratio >= 0)
    if not len(not_below):
        return 0
    n = int(not_below[-1])
    if n == len(ratio) - 1:
        return inf
    return float(np.exp(np.interp(0, -ratio[n : n + 2], tokens[n : n + 2])))


def crossing_ends(both: pd.DataFrame) -> tuple[float | None, float | None]:
    """The earliest and the latest crossing that the intervals of the ratios allow.

    Where fewer than six passes hold both, a ratio has no exact interval: it is that of the two times then, as if they
    were independent.
    """
    apart = both["low"] / both["high_global"], both["high"] / both["low_global"]
    low, high = both["low_ratio"].fillna(apart[0]), both["high_ratio"].fillna(apart[1])
    return crossing(both.assign(end=low), "end"), crossing(both.assign(end=high), "end")


def _number(both: pd.DataFrame, tokens: float | None) -> str:
    if tokens is None:
        return "-"
    if tokens == 0:
        return f"less than {both['tokens'].iloc[0]}"
    return f"more than {both['tokens'].iloc[-1]}" if tokens == inf else text.number(tokens, 3)


studies.add(Window())
