"""A comparison as a page, a table in the terminal, and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import text
from analysis.compare import Comparison, Line
from analysis.page import Section, png
from analysis.study import axes
from analysis.verdict import WORDS

COLORS = {"slower": "#d55e00", "faster": "#009e73", "same": "#0072b2", "inconclusive": "#999999"}


def sentence(found: Comparison) -> str:
    """The outcome, with its figures."""
    counts = ", ".join(f"{found.count(word)} {word}" for word in WORDS)
    floor = "is not known" if found.floor is None else f"is {found.floor:.1%}"
    return (
        f"{found.second} against {found.first}: of {len(found.lines)} cases {counts}. The margin of equivalence is "
        f"{found.margin:.1%}, the noise floor {floor}."
    )


def sections(found: Comparison) -> list[Section]:
    """Outcome with its figure and all lines, then the cases that only one side has a time of."""
    what = " ".join([sentence(found), *found.notes])
    table = pd.DataFrame([row(line) for line in sorted(found.lines, key=_order)])
    figure = png(_figure(found)) if found.lines else None
    rest = pd.DataFrame(found.apart)
    return [
        Section("comparison", "What became faster or slower?", what, figure, table if len(table) else None),
        Section(
            "apart",
            "Which cases could not be compared?",
            f"{len(found.apart)} cases lack a time on one side.",
            table=rest if len(rest) else None,
        ),
    ]


def row(line: Line) -> dict[str, str]:
    """As people read it."""
    return {
        "case": line.case,
        "first": text.seconds(line.first["seconds"], line.first["low"], line.first["high"]),
        "second": text.seconds(line.second["seconds"], line.second["low"], line.second["high"]),
        "second over first": text.ratio(*line.interval),
        "verdict": line.verdict.word,
        "reason": line.verdict.reason,
    }


def to_dict(found: Comparison) -> dict[str, Any]:
    """For JSON: what is not known is None."""
    return {
        "first": found.first,
        "second": found.second,
        "margin": found.margin,
        "noise_floor": found.floor,
        "notes": found.notes,
        "counts": {word: found.count(word) for word in WORDS},
        "cases": [
            {
                "case": line.case,
                "verdict": line.verdict.word,
                "reason": line.verdict.reason,
                **{
                    name: None if np.isnan(value) else value
                    for name, value in zip(("ratio", "low", "high"), line.interval, strict=True)
                },
            }
            for line in found.lines
        ],
        "apart": found.apart,
    }


def _order(line: Line) -> tuple[int, float]:
    return WORDS.index(line.verdict.word), -line.interval[0]


def _figure(found: Comparison) -> Figure:
    """A line per case, slowest below; the margin shaded."""
    lines = sorted(found.lines, key=lambda line: line.interval[0])
    figure, (panel,) = axes(1, 9.0)
    figure.set_figheight(min(40.0, 1.6 + 0.16 * len(lines)))
    for y, line in enumerate(lines):
        middle, low, high = line.interval
        color = COLORS[line.verdict.word]
        panel.plot([low, high], [y, y], color=color, lw=1.2)
        panel.plot(middle, y, "o", color=color, ms=3)
    for word, color in COLORS.items():
        panel.plot([], [], "o-", color=color, label=f"{word}: {found.count(word)}")
    panel.axvspan(1 / (1 + found.margin), 1 + found.margin, color="k", alpha=0.08)
    panel.axvline(1, color="k", lw=0.8)
    panel.set_yticks(range(len(lines)), [line.case for line in lines], fontsize=5.5)
    panel.set(
        xlabel=f"time of {found.second} over {found.first} (no line: fewer than 6 passes)",
        xscale="log",
        ylim=(-1, len(lines)),
    )
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.xaxis.set_minor_formatter(lambda value, _: f"{value:.2g}" if len(lines) else "")
    panel.legend(fontsize=8, frameon=False)
    return figure
