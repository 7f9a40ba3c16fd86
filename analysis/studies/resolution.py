"""How time grows with resolution, beside the MACs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import linregress

from analysis import text
from analysis.study import (
    SIDES,
    Answer,
    Row,
    Study,
    asked_by,
    axes,
    color_of,
    curves,
    log_y,
    mark_x,
    points,
    setting,
    shape,
    studies,
)


class Resolution(Study):
    name = "resolution"
    question = "How does time grow with resolution for each backend, beside the MACs?"
    place = 10

    def answer(self, cases: pd.DataFrame) -> Answer | None:
        measured = asked_by(cases, "resolution", scope="layer")
        found = [(row, curve) for row, curve in curves(measured, SIDES) if curve["tokens"].nunique() > 1]
        if not found:
            return None
        table = pd.DataFrame([_growth(row, curve) for row, curve in found])
        settings = list(dict.fromkeys(setting(row) for row, _ in found))
        figure, panels = axes(len(settings))
        colors = color_of([row["backend"] for row, _ in found])
        for panel, name in zip(panels, settings, strict=True):
            chosen = [(row, curve) for row, curve in found if setting(row) == name]
            for row, curve in chosen:
                points(panel, curve["tokens"], curve, row["backend"], colors[row["backend"]], 1e3)
            fastest = min((curve for _, curve in chosen), key=lambda curve: float(curve["seconds"].iloc[-1]))
            rate = fastest["macs_per_second"].iloc[-1]
            label = f"MACs, at {text.quantity(rate, 'MAC/s')}"
            panel.plot(fastest["tokens"], fastest["macs"] / rate * 1e3, "k--", lw=1, label=label)
            mark_x(panel, [size for _, curve in chosen for size in curve["tokens"]])
            log_y(panel)
            panel.set(xlabel="tokens N", ylabel="ms a layer", title=name)
            panel.title.set_fontsize(9)
            panel.legend(fontsize=8, frameon=False)
        sentence = "; ".join(_in_words(table[table["operator"] == name]) for name in dict.fromkeys(table["operator"]))
        return Answer(f"{sentence}.", table.drop(columns=["_time", "_macs"]), figure)


def _in_words(table: pd.DataFrame) -> str:
    """The exponents of one operator."""
    times = ", ".join(f"{row['_time']:.2f} ({row['backend']})" for row in table.head(6).to_dict("records"))
    return f"{table['operator'].iloc[0]}: time grows as N to the power of {times}, MACs as {table['_macs'].iloc[0]:.2f}"


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
