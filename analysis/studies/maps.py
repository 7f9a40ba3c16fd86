"""What asking for the attention maps costs."""

from __future__ import annotations

import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, against, asked_by, axes, color_of, mark_x, studies, told

SAME = ["backend", "batch", "height", "width", "prefix", "dim", "heads", "dtype", "mode"]
KEPT = ["peak_bytes", "macs"]
SHARED = "maps-way=shared"


class Maps(Study):
    name = "maps"
    question = "What does asking for the attention maps cost, in time and memory?"
    place = 65

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "maps", scope="layer")
        without = measured[measured["operator"] == "global"]
        beside = against(measured[measured["operator"] == "maps"], without, SAME, KEPT)
        naive = without[without["backend"] == "naive"]
        shared = against(measured[measured["operator"] == SHARED], naive, SAME[1:], KEPT)
        found = pd.concat([beside, shared], ignore_index=True)
        if found.empty:
            return None
        found["memory"] = (found["peak_bytes"] / found["peak_bytes_other"]).astype(float)
        found["way"] = [_way(row) for _, row in found.iterrows()]
        figure, (time, memory) = axes(2)
        colors = color_of(list(found["way"]))
        for way, curve in found.groupby("way", sort=False):
            curve = curve.sort_values("tokens").drop_duplicates("tokens")
            color, label = colors[str(way)], str(way)
            ends = [curve["ratio"] - curve["ratio_low"], curve["ratio_high"] - curve["ratio"]]
            time.errorbar(curve["tokens"], curve["ratio"], yerr=ends, capsize=2, marker="o", color=color, label=label)
            memory.plot(curve["tokens"], curve["memory"], marker="o", color=color, label=label)
        for panel, what in ((time, "time"), (memory, "peak memory")):
            panel.axhline(1, color="k", lw=0.8, ls=":")
            panel.set(xlabel="tokens N", ylabel=f"{what} with the maps over without", ylim=(0, None))
            mark_x(panel, found["tokens"])
            panel.legend(fontsize=8, frameon=False)
        return Answer(_sentence(found), pd.DataFrame([_row(row) for _, row in found.iterrows()]), figure)


def _way(row: Row) -> str:
    return "naive, weights shared" if row["operator"] == SHARED else f"{row['backend']}, weights recomputed"


def _sentence(found: pd.DataFrame) -> str:
    most = found[found["tokens"] == found["tokens"].max()].drop_duplicates("way")
    known = most[most["ratio"].notna()]
    costs = [
        f"{row['way']}: {told(row)} the time, {text.ratio(row['memory'])} the memory" for _, row in known.iterrows()
    ]
    return (
        f"No fused kernel gives its weights, so who asks for maps computes the scores again or keeps the naive form. "
        f"At N = {most['tokens'].iloc[0]}, with the maps over without on the same backend: {'; '.join(costs)}."
    )


def _row(row: Row) -> dict[str, object]:
    return {
        "way": row["way"],
        "tokens": row["tokens"],
        "dtype": row["dtype"],
        "mode": row["mode"],
        "time": text.seconds(row["seconds"], row["low"], row["high"]),
        "over without": told(row),
        "MACs over without": text.ratio(row["macs"] / row["macs_other"]),
        "peak": text.quantity(row["peak_bytes"], "B"),
        "peak over without": text.ratio(row["memory"]),
    }


studies.add(Maps())
