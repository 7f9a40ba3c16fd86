"""What whole models cost, beside one another and their MACs."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
from matplotlib.axes import Axes

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, asked_by, axes, color_of, studies, times
from vitbench.model import models

NEAR = 0.15  # MACs no farther apart are as many
SAME = ["batch", "dtype", "mode", "pixels"]


class Models(Study):
    name = "model"
    question = "What do whole models cost, beside convolutional ones of as many MACs?"
    place = 80

    def answer(self, run: Run) -> Answer | None:
        known = _named(asked_by(run.cases, "model", scope="model"))
        if known.empty:
            return None
        groups = [group for _, group in known.groupby(SAME, sort=False)]
        figure, drawn = axes(len(groups), 7.2)
        figure.set_figheight(1.6 + 0.3 * max(map(len, groups)))
        for panel, group in zip(drawn, groups, strict=True):
            _draw(panel, group.sort_values("seconds", ascending=False))
        table = pd.DataFrame([_row(row) for group in groups for _, row in group.sort_values("macs").iterrows()])
        return Answer(_sentence(max(groups, key=len)), table, figure)


def _named(measured: pd.DataFrame) -> pd.DataFrame:
    """With the name of the variant and the pixels of an image's side, and MACs of one image in 10^9."""
    variants = {(str(one.model), one.dim, one.heads, one.prefix): one for one in models}
    found = [variants.get((row["operator"], row["dim"], row["heads"], row["prefix"])) for _, row in measured.iterrows()]
    return measured.assign(
        model=[one.name if one else text_ for one, text_ in zip(found, measured["operator"], strict=True)],
        pixels=[one.model.pixels() * n if one else n for one, n in zip(found, measured["height"], strict=True)],
        gmacs=measured["macs"].astype(float) / measured["batch"] / 1e9,
    )


def _draw(panel: Axes, group: pd.DataFrame) -> None:
    """A row a model and backend, fastest at the top."""
    colors, labels = color_of(list(group["model"])), []
    for place, (_, row) in enumerate(group.iterrows()):
        rate, slowest, fastest = row["images_per_second"], row["batch"] / row["high"], row["batch"] / row["low"]
        ends = [[rate - slowest], [fastest - rate]]
        panel.errorbar([rate], [place], xerr=ends, fmt="o", ms=6, capsize=2, color=colors[row["model"]])
        labels.append(f"{row['model']}, {row['backend']}: {text.number(row['gmacs'])} GMACs")
    panel.set_yticks(range(len(labels)), labels, fontsize=8)
    panel.set_title(_setting(group.iloc[0]), fontsize=9)
    panel.set(xlabel="images/s", xlim=(0, None))


def _setting(row: Row) -> str:
    return f"{row['pixels']} x {row['pixels']} pixels, B={row['batch']}, {row['dtype']}, {row['mode']}"


def _sentence(group: pd.DataFrame) -> str:
    """Each model on its fastest backend, and the two of nearly equal MACs whose times lie farthest apart."""
    best = [row for _, row in group.sort_values("seconds").drop_duplicates("model").iterrows()]
    rates = [f"{row['model']} {text.number(row['images_per_second'])} ({text.number(row['gmacs'])})" for row in best]
    setting = _setting(best[0])
    told = f"Images/s (and GMACs an image) at {setting}, each with its fastest attention: {', '.join(rates)}."
    pairs = [(slow, fast) for fast, slow in combinations(best, 2) if _near(slow["gmacs"], fast["gmacs"])]
    if not pairs:
        return told
    slow, fast = max(pairs, key=lambda pair: pair[0]["seconds"] / pair[1]["seconds"])
    ratio = text.ratio(*times(slow, fast))
    return f"{told} Of as many MACs within {NEAR:.0%}, {slow['model']} takes {ratio} the time of {fast['model']}."


def _near(some: float, others: float) -> bool:
    return max(some, others) <= (1 + NEAR) * min(some, others)


def _row(row: Row) -> dict[str, object]:
    return {
        "model": row["model"],
        "attention by": row["backend"],
        "pixels": row["pixels"],
        "batch": row["batch"],
        "dtype": row["dtype"],
        "mode": row["mode"],
        "GMACs an image": text.number(row["gmacs"]),
        "of them pairs": f"{row['pair_macs'] / row['macs']:.1%}",
        "parameters": text.quantity(row["parameters"], ""),
        "time": text.seconds(row["seconds"], row["low"], row["high"]),
        "images/s": text.number(row["images_per_second"]),
        "rate": text.quantity(row["macs_per_second"], "MAC/s"),
        "peak": text.quantity(row["peak_bytes"], "B"),
    }


studies.add(Models())
