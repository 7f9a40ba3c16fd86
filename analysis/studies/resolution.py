"""How time grows with resolution, beside the MACs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import linregress

from analysis import text
from analysis.load import Run
from analysis.study import (
    SIDES,
    Answer,
    Row,
    Study,
    asked_by,
    color_of,
    curves,
    log_y,
    mark_x,
    panels,
    points,
    setting,
    shape,
    studies,
)


class Resolution(Study):
    name = "resolution"
    question = "How does time grow with resolution for each backend, beside the MACs?"
    place = 10

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "resolution", scope="layer")
        found = [(row, curve) for row, curve in curves(measured, SIDES) if curve["tokens"].nunique() > 1]
        if not found:
            return None
        table = pd.DataFrame([_growth(row, curve) for row, curve in found])
        figure, drawn = panels(found, setting)
        for panel, chosen in drawn:
            colors = color_of([row["backend"] for row, _ in chosen])
            for row, curve in chosen:
                points(panel, curve["tokens"], curve, row["backend"], colors[row["backend"]], 1e3)
            # the MACs, at the rate of the curve that goes furthest, and of such the fastest
            reached = [(curve["tokens"].iloc[-1], -curve["seconds"].iloc[-1]) for _, curve in chosen]
            best = chosen[max(range(len(chosen)), key=reached.__getitem__)][1]
            rate = best["macs_per_second"].iloc[-1]
            label = f"MACs, at {text.quantity(rate, 'MAC/s')}"
            panel.plot(best["tokens"], best["macs"] / rate * 1e3, "k--", lw=1, label=label)
            log_y(panel)
            panel.set(xlabel="tokens N", ylabel="ms a layer")
            mark_x(panel, [size for _, curve in chosen for size in curve["tokens"]])
            panel.legend(fontsize=8, frameon=False)
        parts = [table[table["operator"] == name] for name in dict.fromkeys(table["operator"])]
        sentence = "; ".join(_in_words(part[part["shape"] == part["shape"].iloc[0]]) for part in parts)
        return Answer(f"{sentence}.", table.drop(columns=["_time", "_macs"]), figure)


def _in_words(table: pd.DataFrame) -> str:
    """The exponents of one operator in one setting."""
    times = ", ".join(f"{row['_time']:.2f} ({row['backend']})" for row in table.to_dict("records"))
    name = f"{table['operator'].iloc[0]} ({table['shape'].iloc[0]})"
    return f"{name}: time grows as N to the power of {times}, MACs as {table['_macs'].iloc[0]:.2f}"


def _growth(row: Row, curve: pd.DataFrame) -> dict[str, object]:
    """Exponents from straight lines through the logarithms, over all sizes of the curve."""
    logs = np.log(curve[["tokens", "seconds", "macs"]].astype(float))
    time, macs = linregress(logs["tokens"], logs["seconds"]), linregress(logs["tokens"], logs["macs"])
    spread = f" ± {time.stderr:.2f}" if len(curve) > 2 else ""
    first, last = curve.iloc[0], curve.iloc[-1]
    return {
        "operator": row["operator"],
        "backend": row["backend"],
        "shape": shape(row),
        "tokens": f"{first['tokens']} to {last['tokens']}",
        "exponent of time": f"{time.slope:.2f}{spread}",
        "exponent of MACs": f"{macs.slope:.2f}",
        "time at the smallest": text.seconds(first["seconds"], first["low"], first["high"]),
        "time at the largest": text.seconds(last["seconds"], last["low"], last["high"]),
        "_time": time.slope,
        "_macs": macs.slope,
    }


studies.add(Resolution())
