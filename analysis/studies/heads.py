"""What more heads cost though the MACs stay the same."""

from __future__ import annotations

import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, asked_by, color_of, curves, mark_x, panels, points, studies, times


class Heads(Study):
    name = "heads"
    question = "What do more heads cost, though the MACs stay the same?"
    place = 60

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "heads")
        found = [(row, curve) for row, curve in curves(measured, ["heads"]) if curve["heads"].nunique() > 1]
        if not found:
            return None
        figure, drawn = panels(found, _setting)
        for panel, chosen in drawn:
            colors = color_of([row["backend"] for row, _ in chosen])
            for row, curve in chosen:
                points(panel, curve["heads"], curve, row["backend"], colors[row["backend"]], 1e3)
            panel.set(xlabel="heads H (head_dim = D / H)", ylabel="ms", ylim=(0, None))
            mark_x(panel, measured["heads"])
            panel.legend(fontsize=8, frameon=False)
        table = pd.concat([_rows(row, curve) for row, curve in found], ignore_index=True)
        first = found[0][0]
        each = "; ".join(_most(row, curve) for row, curve in drawn[0][1])
        macs = text.quantity(float(first["macs"]), "MAC")
        return Answer(f"At the same {macs} ({_setting(first)}), {each}.", table, figure)


def _setting(row: Row) -> str:
    return f"N={row['tokens']}, D={row['dim']}, B={row['batch']}, {row['dtype']}, {row['scope']}, {row['mode']}"


def _most(row: Row, curve: pd.DataFrame) -> str:
    first, last = curve.iloc[0], curve.iloc[-1]
    more = text.ratio(*times(last, first))
    return f"{row['backend']} takes {more} the time with {last['heads']} heads that it takes with {first['heads']}"


def _rows(row: Row, curve: pd.DataFrame) -> pd.DataFrame:
    best = curve.sort_values("seconds").iloc[0]
    lines = [
        {
            "backend": row["backend"],
            "scope": row["scope"],
            "dtype": row["dtype"],
            "mode": row["mode"],
            "heads": line["heads"],
            "head_dim": line["dim"] // line["heads"],
            "score elements": f"{line['score_elements']:,}",
            "time": text.seconds(line["seconds"], line["low"], line["high"]),
            "over the fastest of its rows, pass by pass": text.ratio(*times(line, best)),
            "peak memory": text.quantity(line["peak_bytes"], "B"),
        }
        for _, line in curve.iterrows()
    ]
    return pd.DataFrame(lines)


studies.add(Heads())
