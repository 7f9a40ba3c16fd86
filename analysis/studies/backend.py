"""Which backend wins at which shape, and by what interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from analysis import text
from analysis.load import Run
from analysis.noise import quieter
from analysis.study import WORK, Answer, Study, axes, of_sweep, studies, times
from analysis.verdict import MARGIN, verdict


class Backend(Study):
    name = "backend"
    question = "Which backend wins at which shape, and by what interval?"
    place = 80

    def answer(self, run: Run) -> Answer | None:
        cases = run.cases
        asked = of_sweep(cases, "backend")
        groups = [group for _, group in asked.groupby(list(WORK), sort=False) if group["seconds"].notna().sum() > 1]
        if not groups:
            return None
        _, floor = quieter(cases)
        table = pd.DataFrame([_winner(group, floor) for group in groups])
        alone = table[table["verdict"] == "wins"]["fastest"].value_counts()
        among = pd.Series([name for names in table.pop("_leaders") for name in names]).value_counts()
        wins = ", ".join(f"{name} {count}" for name, count in alone.items()) or "none"
        ties = ", ".join(f"{name} in {count}" for name, count in among.items())
        unsettled = int((table["verdict"] == "unsettled").sum())
        sentence = (
            f"Of {len(table)} shapes, {alone.sum()} have a single winner ({wins}) and {unsettled} are unsettled. "
            f"Fastest, or not told apart from the fastest: {ties}."
        )
        return Answer(sentence, table, _heatmap(groups))


def _label(group: pd.DataFrame) -> str:
    row = group.iloc[0]
    grid = f"{row['prefix']}+" * bool(row["prefix"]) + f"{row['height']}x{row['width']}"
    return f"{row['operator']} {grid}, D={row['dim']}, B={row['batch']}, {row['dtype']}, {row['scope']}, {row['mode']}"


def _winner(group: pd.DataFrame, floor: float | None) -> dict[str, object]:
    """The fastest, those that are not told apart from it, and the first that is slower."""
    ranked = group[group["seconds"].notna()].sort_values("seconds")
    first = ranked.iloc[0]
    ratios = {row["backend"]: times(row, first) for _, row in ranked.iloc[1:].iterrows()}
    level = [name for name, ratio in ratios.items() if verdict(ratio, MARGIN, floor).word != "slower"]
    settled = all(np.isfinite(low) for _, low, _ in ratios.values())
    slower = [name for name in ratios if name not in level]
    naive = ratios.get("naive")
    refused = group[group["state"] == "unsupported"]["backend"]
    return {
        "shape": _label(group),
        "fastest": first["backend"],
        "time": text.seconds(first["seconds"], first["low"], first["high"]),
        "not told apart from it": ", ".join(level) or "-",
        "next": f"{slower[0]}: {text.ratio(*ratios[slower[0]])}" if slower else "-",
        "verdict": ("not told apart" if level else "wins") if settled else "unsettled",
        "naive over fastest": text.ratio(*naive) if naive else "-",
        "cannot run it": ", ".join(refused) or "-",
        "_leaders": [first["backend"], *level],
    }


def _heatmap(groups: list[pd.DataFrame]) -> Figure:
    """Time over the fastest, a row per shape, a column per backend; what did not run is grey and says why not."""
    backends = sorted({name for group in groups for name in group["backend"]})
    figure, (panel,) = axes(1, max(8.0, 2.8 + 0.9 * len(backends)))
    figure.set_size_inches(figure.get_figwidth() + 2.5, 1.2 + 0.42 * len(groups))
    ratios = np.full((len(groups), len(backends)), np.nan)
    for y, group in enumerate(groups):
        fastest = group.sort_values("seconds").iloc[0]
        for _, row in group.iterrows():
            x = backends.index(row["backend"])
            if pd.notna(row["seconds"]):
                ratios[y, x] = times(row, fastest)[0]
            word = text.number(ratios[y, x]) if np.isfinite(ratios[y, x]) else row["state"].replace("_", " ")
            dark = np.isfinite(ratios[y, x]) and ratios[y, x] > 2.5
            panel.text(x, y, word, ha="center", va="center", fontsize=7.5, color="w" if dark else "k")
    panel.imshow(
        np.log2(ratios), cmap=colormaps["viridis_r"].with_extremes(bad="#eeeeee"), vmin=0, vmax=2, aspect="auto"
    )
    panel.set_xticks(range(len(backends)), backends, rotation=25, ha="right", fontsize=8)
    panel.set_yticks(range(len(groups)), [_label(group) for group in groups], fontsize=7.5)
    panel.grid(False)
    panel.set_title("time over the fastest backend of the row, pass by pass", fontsize=9)
    return figure


studies.add(Backend())
