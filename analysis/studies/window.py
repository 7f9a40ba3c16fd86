"""When windows beat global attention, predicted by MACs and measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import (
    SIDES,
    WORK,
    Answer,
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
from vitbench.interval import ratio

SAME = [name for name in WORK if name not in ("operator", "scope")]


class Window(Study):
    name = "window"
    question = "When do windows beat global attention, predicted and measured?"
    place = 50

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "window", scope="layer")
        whole = measured[measured["operator"] == "global"].sort_values("seconds")
        against = whole.groupby(SAME, as_index=False).first()[[*SAME, "by_pass", "macs", "backend"]]
        windows = list(curves(measured[measured["operator"] != "global"], SIDES))
        found = [(row, both) for row, curve in windows if len(both := _against(curve, against))]
        if not found:
            return None
        figure, drawn = panels(found, _setting, 5.6)
        for panel, chosen in drawn:
            colors = color_of([row["operator"] for row, _ in chosen])
            for row, both in chosen:
                color = colors[row["operator"]]
                ratios = both["measured"], both["low_ratio"], both["high_ratio"]
                bars(panel, both["tokens"], *ratios, row["operator"], color)
                panel.plot(both["tokens"], both["predicted"], "--", lw=1, color=color)
            panel.axhline(1, color="k", lw=0.8)
            mark_x(panel, [size for _, both in chosen for size in both["tokens"]])
            log_y(panel)
            panel.set(xlabel="tokens N", ylabel="window / global")
            panel.legend(fontsize=8, frameon=False)
        table = pd.DataFrame([_crossing(row, both) for row, both in found])
        return Answer(_sentence(found), table, figure)


def _against(curve: pd.DataFrame, against: pd.DataFrame) -> pd.DataFrame:
    """Each window beside the fastest global attention on its grid: time over time, pass by pass, MACs over MACs."""
    both = curve.merge(against, on=SAME, suffixes=("", "_global"))
    ratios = [ratio(row["by_pass"], row["by_pass_global"]) for _, row in both.iterrows()]
    measured = pd.DataFrame(ratios, columns=["measured", "low_ratio", "high_ratio"])
    return both.join(measured).assign(predicted=both["macs"] / both["macs_global"])


def _setting(row: Row) -> str:
    cut = "shifted" if "-shift" in row["operator"] else "unshifted"
    return f"{cut}, {row['backend']}, {shape(row)}\npoints seconds, dashes MACs"


def _sentence(found: list[tuple[Row, pd.DataFrame]]) -> str:
    row, both = next((pair for pair in found if pair[0]["operator"] == "window7"), found[0])
    last = both.iloc[-1]
    return (
        f"{row['operator']} ({row['backend']}, {shape(row)}) needs fewer MACs than global attention "
        f"({last['backend_global']}) from "
        f"N = {_first(both, 'predicted')} and less time from N = {_first(both, 'measured')} of the grids measured; "
        f"at N = {last['tokens']} global "
        f"attention takes {text.number(1 / last['measured'])} times its time and {text.number(1 / last['predicted'])} "
        f"times its MACs."
    )


def _first(both: pd.DataFrame, column: str) -> str:
    """The smallest grid from which on the ratio stays below 1."""
    stays = (both[column] < 1)[::-1].cummin()[::-1]
    return str(both["tokens"][stays].iloc[0]) if stays.any() else f"more than {both['tokens'].iloc[-1]}"


def _crossing(row: Row, both: pd.DataFrame) -> dict[str, object]:
    last = both.iloc[-1]
    return {
        "operator": row["operator"],
        "backend": f"{row['backend']}, against global {last['backend_global']}",
        "shape": shape(row),
        "fewer MACs from N": _equal(both, "predicted"),
        "less time from N": _equal(both, "measured"),
        "largest N": last["tokens"],
        "MACs there": text.ratio(last["predicted"]),
        "time there": text.ratio(last["measured"], last["low_ratio"], last["high_ratio"]),
    }


def _equal(both: pd.DataFrame, column: str) -> str:
    """Where the ratio falls through 1 for good, between the grids that enclose it (both scales logarithmic)."""
    both = both[both[column].notna()]
    if both.empty:
        return "-"
    ratio, tokens = np.log(both[column].to_numpy(float)), np.log(both["tokens"].to_numpy(float))
    not_below = np.flatnonzero(ratio >= 0)
    if not len(not_below):
        return f"less than {both['tokens'].iloc[0]}"
    n = int(not_below[-1])
    if n == len(ratio) - 1:
        return f"more than {both['tokens'].iloc[-1]}"
    return text.number(float(np.exp(np.interp(0, -ratio[n : n + 2], tokens[n : n + 2]))), 3)


studies.add(Window())
