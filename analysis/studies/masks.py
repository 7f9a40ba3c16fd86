"""What masks cost, and how many of the pairs that they make a program compute are of use."""

from __future__ import annotations

from math import isnan

import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, against, asked_by, axes, color_of, studies, times, told

PLAIN = "global"
SAME = ["backend", "batch", "height", "width", "dim", "heads", "dtype", "mode"]


class Masks(Study):
    name = "masks"
    question = "What do masks cost, and how many of the computed pairs are of use?"
    place = 55

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "masks", scope="layer")
        plain = measured["operator"] == PLAIN
        found = against(measured[~plain], measured[plain], SAME)
        if found.empty:
            return None
        figure, (cost, use) = axes(2)
        names, backends = (list(dict.fromkeys(found[column])) for column in ("operator", "backend"))
        colors, one = color_of(backends), found[["dtype", "mode"]].iloc[0]
        shown = found[(found[["dtype", "mode"]] == one).all(axis=1)]
        for n, backend in enumerate(backends):
            group = shown[shown["backend"] == backend].drop_duplicates("operator")
            x = [names.index(name) + 0.15 * (n - (len(backends) - 1) / 2) for name in group["operator"]]
            ends = [group["ratio"] - group["ratio_low"], group["ratio_high"] - group["ratio"]]
            cost.errorbar(x, group["ratio"], yerr=ends, fmt="o", ms=5, capsize=2, color=colors[backend], label=backend)
        cost.axhline(1, color="k", lw=0.8, ls=":")
        cost.set(ylim=(0, None), ylabel="time over no mask, same shape", xlabel="mask")
        cost.set_xticks(range(len(names)), names)
        cost.legend(fontsize=8, frameon=False)
        shares = found.drop_duplicates("operator")
        use.bar(names, shares["useful_score_elements"] / shares["score_elements"], color="#0072b2")
        use.set(ylim=(0, 1), ylabel="share of the computed pairs that is of use", xlabel="mask")
        return Answer(_sentence(found, measured), pd.DataFrame([_told(row) for _, row in found.iterrows()]), figure)


def _sentence(found: pd.DataFrame, measured: pd.DataFrame) -> str:
    parts = []
    for name, group in found.groupby("operator", sort=False):
        share = group["useful_score_elements"].iloc[0] / group["score_elements"].iloc[0]
        known = group[group["ratio"].notna()]
        ratios = ", ".join(f"{told(row)} on {row['backend']}" for _, row in known.iterrows()) or "an unknown time"
        parts.append(f"{name} uses {share:.0%} of the pairs that it computes and takes {ratios}")
    sentence = "Beside no mask on the same shape, " + "; ".join(parts) + "."
    return " ".join([sentence, *_packing(measured)])


def _packing(measured: pd.DataFrame) -> list[str]:
    """The same images packed and padded: packed4 of one sequence holds what padding4 has in four."""
    found = []
    for (backend, dtype, mode), group in measured.groupby(["backend", "dtype", "mode"], sort=False):
        padded, packed = (group[group["operator"].str.startswith(name)] for name in ("padding", "packed"))
        if len(padded) == len(packed) == 1:
            one, other = padded.iloc[0], packed.iloc[0]
            ratio = times(other, one)
            if not isnan(ratio[0]):
                found.append(f"{text.ratio(*ratio)} on {backend} ({dtype}, {mode})")
    if not found:
        return []
    return [f"The same images packed into one sequence take {' and '.join(found)} of the time that they take padded."]


def _told(row: Row) -> dict[str, object]:
    return {
        "mask": row["operator"],
        "backend": row["backend"],
        "images": row["batch"],
        "tokens": row["tokens"],
        "pairs computed": text.quantity(row["score_elements"], ""),
        "of use": f"{row['useful_score_elements'] / row['score_elements']:.1%}",
        "time": text.seconds(row["seconds"], row["low"], row["high"]),
        "over no mask": told(row),
        "attention by": ", ".join(row["attended"]) if isinstance(row["attended"], list) else "-",
        "mode": row["mode"],
    }


studies.add(Masks())
