"""Which share the pair terms have, and where they overtake the projections."""

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
    mark_x,
    panels,
    shape,
    studies,
)
from vitbench.interval import ratio


class Pairs(Study):
    name = "pairs"
    question = "Which share do the pair terms (scores, mix) have, and where do they overtake the projections?"
    place = 20

    def answer(self, run: Run) -> Answer | None:
        cases = run.cases
        cores = asked_by(cases, "resolution", scope="core", operator="global")
        layers = asked_by(cases, "resolution", scope="layer", operator="global")
        found = [(row, both) for row, curve in curves(layers, SIDES) if len(both := _with_core(curve, cores)) > 1]
        if not found:
            return None
        figure, drawn = panels(found, shape)
        for panel, chosen in drawn:
            colors = color_of([row["backend"] for row, _ in chosen])
            longest = max((both for _, both in chosen), key=len)
            panel.plot(longest["tokens"], longest["macs_share"], "k--", label="of the MACs")
            for row, both in chosen:
                label = f"of the seconds (core alone over layer), {row['backend']}"
                shares = both["share"], both["share_low"], both["share_high"]
                bars(panel, both["tokens"], *shares, label, colors[row["backend"]])
            crossing = 2 * int(chosen[0][0]["dim"])
            panel.axvline(crossing, color="k", lw=0.8, ls=":")
            panel.text(crossing * 1.02, 0.02, f"N = 2D = {crossing}", fontsize=8)
            mark_x(panel, [size for _, both in chosen for size in both["tokens"]])
            panel.set(ylim=(0, None), xlabel="tokens N", ylabel="share of the pair terms in the layer")
            panel.legend(fontsize=8, frameon=False)
        table = pd.DataFrame([_crossings(row, both) for row, both in found])
        first = found[0][0]
        where = "; ".join(f"{row['backend']}: {_half(both)}" for row, both in drawn[0][1])
        sentence = (
            f"In MACs the pair terms overtake the projections at N = 2D = {2 * int(first['dim'])} ({shape(first)}); "
            f"in seconds the core, timed alone, takes half of its layer's time at N of {where}."
        )
        return Answer(sentence, table, figure)


def _with_core(curve: pd.DataFrame, cores: pd.DataFrame) -> pd.DataFrame:
    """The layers whose core was measured too, with the core's time over the layer's, and the same of the MACs."""
    same = ["backend", *(name for name in WORK if name != "scope")]
    both = curve.merge(cores[[*same, "by_pass"]], on=same, suffixes=("", "_core"))
    ratios = [ratio(row["by_pass_core"], row["by_pass"]) for _, row in both.iterrows()]
    shares = pd.DataFrame(ratios, columns=["share", "share_low", "share_high"])
    return both.join(shares).assign(macs_share=both["pair_macs"] / both["macs"])


def _crossings(row: Row, curve: pd.DataFrame) -> dict[str, object]:
    first, last = curve.iloc[0], curve.iloc[-1]
    return {
        "backend": row["backend"],
        "shape": shape(row),
        "half of the MACs at N": text.number(2 * row["dim"], 4),
        "half of the seconds at N": _half(curve),
        "tokens": f"{first['tokens']} to {last['tokens']}",
        "share of MACs": f"{first['macs_share']:.1%} to {last['macs_share']:.1%}",
        "core over layer in seconds, smallest": _percent(first),
        "core over layer in seconds, largest": _percent(last),
    }


def _percent(line: Row) -> str:
    return text.percent(line["share"], line["share_low"], line["share_high"])


def _half(curve: pd.DataFrame) -> str:
    """Where the share of the seconds reaches one half, between the sizes that enclose it (N on a log scale)."""
    share, tokens = curve["share"].to_numpy(float), np.log(curve["tokens"].to_numpy(float))
    above = np.flatnonzero(share >= 0.5)
    if not len(above):
        return f"more than {curve['tokens'].iloc[-1]}"
    n = int(above[0])
    if n == 0:
        return f"less than {curve['tokens'].iloc[0]}"
    at = np.interp(0.5, share[n - 1 : n + 1], tokens[n - 1 : n + 1])
    return text.number(float(np.exp(at)), 3)


studies.add(Pairs())
