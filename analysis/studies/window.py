"""When windows beat global attention, predicted by MACs and measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis import text
from analysis.study import Answer, Row, Study, asked_by, axes, color_of, curves, mark_x, studies

SIDES = ("height", "width")


class Window(Study):
    name = "window"
    question = "When do windows beat global attention, predicted and measured?"
    place = 50

    def answer(self, cases: pd.DataFrame) -> Answer | None:
        measured = asked_by(cases, "window", scope="layer")
        whole = measured[measured["operator"] == "global"]
        same = ["batch", "height", "width", "dim", "heads", "dtype", "mode"]
        fastest = whole.sort_values("seconds").groupby(same, as_index=False).first()
        against = fastest[[*same, "seconds", "low", "high", "macs", "backend"]]
        found = []
        for row, curve in curves(measured[measured["operator"] != "global"], SIDES):
            both = curve.merge(against, on=same, suffixes=("", "_global"))
            both["measured"], both["predicted"] = (
                both["seconds"] / both["seconds_global"],
                both["macs"] / both["macs_global"],
            )
            if len(both):
                found.append((row, both))
        if not found:
            return None
        figure, panels = axes(2, 5.6)
        shifted = [["-shift" in row["operator"] for row, _ in found].count(flag) for flag in (False, True)]
        for panel, flag, count in zip(panels, (False, True), shifted, strict=True):
            chosen = [(row, both) for row, both in found if ("-shift" in row["operator"]) == flag]
            colors = color_of([row["operator"] for row, _ in chosen])
            for row, both in chosen:
                color = colors[row["operator"]]
                low, high = both["low"] / both["high_global"], both["high"] / both["low_global"]
                bars = [both["measured"] - low, high - both["measured"]]
                panel.errorbar(
                    both["tokens"],
                    both["measured"],
                    yerr=bars,
                    marker="o",
                    ms=4,
                    capsize=2,
                    color=color,
                    label=row["operator"],
                )
                panel.plot(both["tokens"], both["predicted"], "--", lw=1, color=color)
            panel.axhline(1, color="k", lw=0.8)
            mark_x(panel, [size for _, both in chosen for size in both["tokens"]])
            panel.set(yscale="log", xlabel="tokens N", ylabel="window / global")
            panel.set_title(f"{'shifted' if flag else 'unshifted'}: points seconds, dashes MACs", fontsize=9)
            if count:
                panel.legend(fontsize=8, frameon=False)
        table = pd.DataFrame([_crossing(row, both) for row, both in found])
        return Answer(_sentence(found), table, figure)


def _sentence(found: list[tuple[Row, pd.DataFrame]]) -> str:
    row, both = next((pair for pair in found if pair[0]["operator"] == "window7"), found[0])
    last = both.iloc[-1]
    return (
        f"{row['operator']} (D={row['dim']}) needs fewer MACs than global attention from "
        f"N = {_first(both, 'predicted')} and less time from N = {_first(both, 'measured')} of the grids measured; "
        f"at N = {last['tokens']} global "
        f"attention takes {text.number(1 / last['measured'])} times its time and {text.number(1 / last['predicted'])} "
        f"times its MACs."
    )


def _first(both: pd.DataFrame, column: str) -> str:
    below = both["tokens"][both[column] < 1]
    return str(below.iloc[0]) if len(below) else f"more than {both['tokens'].iloc[-1]}"


def _crossing(row: Row, both: pd.DataFrame) -> dict[str, object]:
    last = both.iloc[-1]
    return {
        "operator": row["operator"],
        "backend": f"{row['backend']}, against global {last['backend_global']}",
        "shape": f"D={row['dim']}, H={row['heads']}, B={row['batch']}, {row['dtype']}, {row['mode']}",
        "fewer MACs from N": _equal(both, "predicted"),
        "less time from N": _equal(both, "measured"),
        f"MACs, N = {last['tokens']}": text.ratio(last["predicted"]),
        f"time, N = {last['tokens']}": text.ratio(
            last["measured"], last["low"] / last["high_global"], last["high"] / last["low_global"]
        ),
    }


def _equal(both: pd.DataFrame, column: str) -> str:
    """Where the ratio falls through 1 for good, between the grids that enclose it (both scales logarithmic)."""
    ratio, tokens = np.log(both[column].to_numpy(float)), np.log(both["tokens"].to_numpy(float))
    not_below = np.flatnonzero(ratio >= 0)
    if not len(not_below):
        return f"less than {both['tokens'].iloc[0]}"
    n = int(not_below[-1])
    if n == len(ratio) - 1:
        return f"more than {both['tokens'].iloc[-1]}"
    return text.number(float(np.exp(np.interp(0, -ratio[n : n + 2], tokens[n : n + 2]))), 3)


studies.add(Window())
