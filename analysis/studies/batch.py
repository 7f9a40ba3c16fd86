"""How far a larger batch raises the throughput."""

from __future__ import annotations

import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, asked_by, bars, color_of, curves, mark_x, panels, studies

NEAR = 0.95  # of the best throughput


class Batch(Study):
    name = "batch"
    question = "How far does a larger batch raise the throughput?"
    place = 70

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "batch")
        found = [(row, curve) for row, curve in curves(measured, ["batch"]) if curve["batch"].nunique() > 1]
        if not found:
            return None
        figure, drawn = panels(found, _setting)
        for panel, chosen in drawn:
            colors = color_of([row["backend"] for row, _ in chosen])
            for row, curve in chosen:
                slowest, fastest = curve["batch"] / curve["high"], curve["batch"] / curve["low"]
                rate, color = curve["images_per_second"], colors[row["backend"]]
                bars(panel, curve["batch"], rate, slowest, fastest, row["backend"], color)
            panel.set(xlabel="batch, images", ylabel="images/s through one layer", ylim=(0, None))
            mark_x(panel, measured["batch"])
            panel.legend(fontsize=8, frameon=False)
        table = pd.concat([_rows(row, curve) for row, curve in found], ignore_index=True)
        each = "; ".join(_gain(row, curve) for row, curve in drawn[0][1])
        return Answer(f"{_setting(found[0][0])}: {each}.", table, figure)


def _setting(row: Row) -> str:
    return f"N={row['tokens']}, D={row['dim']}, {row['scope']}, {row['dtype']}, {row['mode']}"


def _gain(row: Row, curve: pd.DataFrame) -> str:
    rate = curve["images_per_second"]
    near = curve["batch"][rate >= NEAR * rate.max()].iloc[0]
    best = curve["batch"].to_numpy()[rate.argmax()]
    return (
        f"{row['backend']} gives {text.number(rate.iloc[0])} images/s at batch {curve['batch'].iloc[0]} and "
        f"{text.number(rate.max())} at its best, {best}; batch {near} is already within 5 % of that"
    )


def _rows(row: Row, curve: pd.DataFrame) -> pd.DataFrame:
    lines = [
        {
            "backend": row["backend"],
            "scope": row["scope"],
            "dtype": row["dtype"],
            "mode": row["mode"],
            "batch": line["batch"],
            "time": text.seconds(line["seconds"], line["low"], line["high"]),
            "images/s": text.number(line["images_per_second"]),
            "rate": text.quantity(line["macs_per_second"], "MAC/s"),
        }
        for _, line in curve.iterrows()
    ]
    return pd.DataFrame(lines)


studies.add(Batch())
