"""Published speeds of hundreds of models against the time model, each family and each card left out of the fit.

Answered from validation.json in the run's folder, which `make validate` writes. An error is that of the seconds of a
batch, predicted over measured.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Study, color_of, studies
from analysis.validation import FILE, OURS, Validation, read

FAILS = 0.1  # median error of a family from which the study names it
LEAST = 3  # rows of a family that is named
WITH, WITHOUT = "#0072b2", "#bbbbbb"


class ValidationStudy(Study):
    name = "validation"
    question = "How well are times predicted that were never measured here?"
    place = 6
    of_records = False

    def answer(self, run: Run) -> Answer | None:
        path = run.folder / FILE
        if not path.exists():
            return None
        found = read(path)
        return Answer(_sentence(found), _table(found), _figure(found))


def _sentence(found: Validation) -> str:
    ours = found.scores[(found.scores["method"] == OURS) & found.scores["median"].notna()]
    told = []
    for table in found.tables:
        of = ours[ours["table"] == table].set_index("left_out")
        if "family" not in of.index:
            told.append(f"{found.title(table)}: its one family cannot be left out")
            continue
        family = of.loc["family"]
        words = (
            f"{found.title(table)}: median error {family['median']:.1%}, 90th percentile {family['p90']:.1%} over "
            f"{family['rows']:.0f} models with attention, their family left out"
        )
        if "card" in of.index:
            card = of.loc["card"]
            words += f"; {card['median']:.1%} and {card['p90']:.1%} from the other card alone"
        told.append(words)
    return f"{'. '.join(told)}. {_failing(found)}"


def _failing(found: Validation) -> str:
    errors = by_family(found)
    worst = errors.abs().min(axis=1, skipna=True)  # wrong on every table
    names = [
        f"{name} ({_range(errors.loc[name])})" for name in worst[worst >= FAILS].sort_values(ascending=False).index
    ]
    return f"It fails, on every table, on {', '.join(names)}." if names else "No family fails on every table."


def _range(errors: pd.Series) -> str:
    low, high = errors.min(), errors.max()
    return f"{low:+.0%}" if np.isclose(low, high) else f"{low:+.0%} to {high:+.0%}"


def by_family(found: Validation) -> pd.DataFrame:
    """Median of predicted / measured - 1 of each family with attention; a column a table."""
    rows = found.rows[found.rows["attention"]]
    rows = rows.assign(error=rows["without_family"] / rows["seconds"] - 1)
    groups = rows.groupby(["family", "table"])["error"]
    kept = groups.median()[groups.count() >= LEAST]
    return kept.unstack("table").reindex(columns=list(found.tables))


def _table(found: Validation) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "measured": found.title(row["table"]),
                "method": row["method"],
                "left out": row["left_out"],
                "models": f"{row['rows']:.0f}",
                "median error": text.share(row["median"]),
                "90th percentile": text.share(row["p90"]),
                "rank correlation": "-" if pd.isna(row["rank"]) else f"{row['rank']:.4f}",
            }
            for _, row in found.scores[found.scores["median"].notna()].iterrows()
        ]
    )


def _figure(found: Validation) -> Figure:
    """The scatters side by side, the families beside them."""
    count = len(found.tables)
    figure = Figure(figsize=(4.6 * count + 5.4, 5.6), dpi=110, layout="constrained")
    panels = list(figure.subplots(1, count + 1, width_ratios=[*[4.6] * count, 4.6]))
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, alpha=0.25)
    for panel, table in zip(panels, found.tables, strict=False):
        _scatter(panel, found, table)
    _families(panels[-1], found)
    return figure


def _scatter(panel: Axes, found: Validation, table: str) -> None:
    rows = found.rows[(found.rows["table"] == table) & found.rows["without_family"].notna()]
    for attention, color, label in ((False, WITHOUT, "no attention"), (True, WITH, "attention, family left out")):
        some = rows[rows["attention"] == attention]
        if len(some):
            x, y = (1e3 * some[name] / some["batch"] for name in ("seconds", "without_family"))
            panel.plot(x, y, "o", ms=3, alpha=0.5, mew=0, color=color, label=f"{label} ({len(some)})")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_aspect("equal", adjustable="datalim")
    panel.set_title(found.title(table), fontsize=9)
    panel.set_xlabel("measured, ms an image")
    panel.set_ylabel("predicted, ms an image")
    if len(rows):
        times = 1e3 * rows["seconds"] / rows["batch"]
        ends = np.array([times.min(), times.max()])
        panel.plot(ends, ends, "k-", lw=0.8)
        panel.legend(fontsize=8, frameon=False)


def _families(panel: Axes, found: Validation) -> None:
    errors = by_family(found)
    errors = errors.loc[errors.mean(axis=1).sort_values().index]
    colors = color_of(list(found.tables))
    for table in found.tables:
        panel.plot(100 * errors[table], range(len(errors)), "o", ms=4, color=colors[table], label=found.title(table))
    panel.set_yticks(range(len(errors)), [str(name) for name in errors.index], fontsize=7)
    panel.axvline(0, color="k", lw=0.8)
    panel.set_xlabel("median error of a family that was left out, %")
    panel.legend(fontsize=7, frameon=False)


studies.add(ValidationStudy())
