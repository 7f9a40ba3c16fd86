"""The contract of a study: one question answered from records by a sentence, a table and a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis import text
from analysis.load import Run
from vitbench.interval import ratio
from vitbench.registry import Registry

Row = Any  # a pandas Series with the columns of analysis.load.COLUMNS; its stubs cannot know their types
Column = Any
Curves = list[tuple[Row, pd.DataFrame]]


@dataclass(frozen=True)
class Answer:
    """sentence: the finding, with its figures. table: cells as people read them. figure: one, with axes named."""

    sentence: str
    table: pd.DataFrame
    figure: Figure


class Study(ABC):
    """One file in analysis/studies/."""

    name: str
    question: str
    place: int = 100  # among the report's sections, lowest first
    of_records: bool = True  # False: of what else lies in the run's folder, or of no measurement

    @abstractmethod
    def answer(self, run: Run) -> Answer | None:
        """None where the run does not hold what the question needs."""


# The columns that say what a case computes; backends may differ.
WORK = ("operator", "batch", "height", "width", "prefix", "dim", "heads", "dtype", "scope", "mode")
SIDES = ("height", "width")

studies: Registry[Study] = Registry("study", "analysis.studies")


def of_sweep(cases: pd.DataFrame, sweep: str) -> pd.DataFrame:
    """The cases that a sweep asked for, measured or not."""
    return cases[pd.Series([sweep in sweeps for sweeps in cases["sweeps"]], index=cases.index, dtype=bool)]


def asked_by(cases: pd.DataFrame, sweep: str, **fixed: str) -> pd.DataFrame:
    """The measured cases of a sweep whose columns have the fixed values."""
    cases = of_sweep(cases, sweep)
    keep = cases["seconds"].notna()
    for column, value in fixed.items():
        keep &= cases[column] == value
    return cases[keep]


def shape(row: Row) -> str:
    """What is the same along a curve, in words, but the operator."""
    return f"D={row['dim']}, H={row['heads']}, B={row['batch']}, {row['dtype']}, {row['mode']}"


def setting(row: Row) -> str:
    """What is the same along a curve, in words."""
    return f"{row['operator']}, {shape(row)}"


def times(above: Row, below: Row) -> tuple[float, float, float]:
    """Seconds of above over seconds of below with its interval, pass by pass."""
    return ratio(above["by_pass"], below["by_pass"])


def against(cases: pd.DataFrame, others: pd.DataFrame, same: Sequence[str], also: Sequence[str] = ()) -> pd.DataFrame:
    """Each case beside the one of others that is the same in those columns; what has none is left out.

    ratio, ratio_low, ratio_high: its seconds over the other's, pass by pass. also: columns of the other to be kept,
    with the ending _other.
    """
    both = cases.merge(others[[*same, "by_pass", *also]], on=list(same), suffixes=("", "_other"))
    ratios = [ratio(row["by_pass"], row["by_pass_other"]) for _, row in both.iterrows()]
    return both.join(pd.DataFrame(ratios, columns=["ratio", "ratio_low", "ratio_high"], dtype=float))


def told(row: Row) -> str:
    """The ratio that `against` gave, in words."""
    return text.ratio(row["ratio"], row["ratio_low"], row["ratio_high"])


def curves(cases: pd.DataFrame, along: Sequence[str]) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Groups of cases that differ in the columns along alone, sorted by them: first row, all rows."""
    by = [name for name in ("backend", *WORK) if name not in along]
    for _, group in cases.groupby(by, sort=False):
        ordered = group.sort_values(list(along))
        yield ordered.iloc[0], ordered


def axes(count: int = 1, width: float = 6.4) -> tuple[Figure, list[Axes]]:
    """A figure with that many panels, at most three a row, frames light."""
    columns, rows = min(count, 3), -(-count // 3)
    figure = Figure(figsize=(width * columns, 4.2 * rows), dpi=110, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in panels[count:]:
        unused.remove()
    panels = panels[:count]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, which="major", alpha=0.25)
    return figure, panels


def panels(found: Curves, name: Callable[[Row], str], width: float = 6.4) -> tuple[Figure, list[tuple[Axes, Curves]]]:
    """One panel for each distinct name of the curves, titled by it, with its curves."""
    names = list(dict.fromkeys(name(row) for row, _ in found))
    figure, drawn = axes(len(names), width)
    for panel, title in zip(drawn, names, strict=True):
        panel.set_title(title, fontsize=9)
    return figure, [
        (panel, [(row, curve) for row, curve in found if name(row) == title])
        for panel, title in zip(drawn, names, strict=True)
    ]


def bars(panel: Axes, x: Column, middle: Column, low: Column, high: Column, label: str, color: str) -> None:
    """A curve with the interval of each point."""
    errors = [middle - low, high - middle]
    panel.errorbar(x, middle, yerr=errors, label=label, color=color, marker="o", ms=4, capsize=2, lw=1.4)


def points(panel: Axes, x: Column, curve: pd.DataFrame, label: str, color: str, scale: float = 1.0) -> None:
    """Times with their intervals, times scale."""
    bars(panel, x, curve["seconds"] * scale, curve["low"] * scale, curve["high"] * scale, label, color)


def color_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each distinct name, in order of first appearance, safe for most colour-blind readers."""
    palette = (
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#cc79a7",
        "#e69f00",
        "#56b4e9",
        "#7f3c8d",
        "#666666",
        "#a6761d",
        "#1b1b1b",
    )
    return {name: palette[n % len(palette)] for n, name in enumerate(dict.fromkeys(names))}


def mark_x(panel: Axes, values: Column) -> None:
    """A logarithmic x axis with its marks at the values measured, as far as they do not crowd."""
    kept: list[int] = []
    for value in sorted({int(value) for value in values}):
        if not kept or value >= 1.15 * kept[-1]:
            kept.append(value)
    panel.set_xscale("log")
    panel.set_xticks(kept, [str(value) for value in kept], fontsize=8)
    panel.xaxis.minorticks_off()


def log_x(panel: Axes) -> None:
    """A logarithmic x axis marked at 1, 2 and 5 times powers of ten, in plain numbers."""
    panel.set_xscale("log")
    _mark(panel.xaxis)


def log_y(panel: Axes) -> None:
    """The same of the y axis."""
    panel.set_yscale("log")
    _mark(panel.yaxis)


def _mark(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
