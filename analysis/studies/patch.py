"""What halving the patch costs."""

from __future__ import annotations

import pandas as pd

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
    shape,
    studies,
    times,
)


class Patch(Study):
    name = "patch"
    question = "What does halving the patch cost?"
    place = 40

    def answer(self, run: Run) -> Answer | None:
        found = [(row, curve) for row, curve in curves(asked_by(run.cases, "patch", scope="layer"), SIDES)]
        steps = [step for row, curve in found for step in _halvings(row, curve)]
        if not steps:
            return None
        table = pd.DataFrame(steps)
        figure, drawn = panels(found, shape)
        for panel, chosen in drawn:
            colors = color_of([row["backend"] for row, _ in chosen])
            for row, curve in chosen:
                points(panel, curve["height"], curve, row["backend"], colors[row["backend"]], 1e3)
            log_y(panel)
            panel.set(xlabel="tokens along a side of the grid (image / patch)", ylabel="ms a layer")
            mark_x(panel, [side for _, curve in chosen for side in curve["height"]])
            panel.legend(fontsize=8, frameon=False)
        last = steps[-1]
        sentence = (
            f"Halving the patch makes 4 times the grid tokens and 16 times the score entries (a little less with CLS); "
            f"from a grid of {last['grid']} it costs {last['MACs']} the MACs "
            f"and {last['time']} the time with {last['backend']} ({last['shape']})."
        )
        return Answer(sentence, table, figure)


def _halvings(row: Row, curve: pd.DataFrame) -> list[dict[str, object]]:
    by_side = {int(line["height"]): line for _, line in curve.iterrows()}
    found = []
    for side, before in by_side.items():
        after = by_side.get(2 * side)
        if after is None:
            continue
        peaks = after["peak_bytes"] / before["peak_bytes"]  # NaN where one was not measured
        found.append(
            {
                "backend": row["backend"],
                "shape": shape(row),
                "grid": f"{side}x{side} to {2 * side}x{2 * side}",
                "tokens": text.ratio(after["tokens"] / before["tokens"]),
                "score entries": text.ratio(after["score_elements"] / before["score_elements"]),
                "MACs": text.ratio(after["macs"] / before["macs"]),
                "time": text.ratio(*times(after, before)),
                "peak memory": "-" if pd.isna(peaks) else text.ratio(peaks),
            }
        )
    return found


studies.add(Patch())
