"""A choice as a figure: time by the side of images, a panel for each patch, a line for each model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from vitbench.choice.choice import Choice
from vitbench.choice.configurations import Rows
from vitbench.refusal import Refusal

FORMATS = (".png", ".pdf", ".svg")
LEAST, MOST = 5e6, 1.1e9  # parameters, the ends of the colours
ROOM = 0.05  # logarithm of the ratio of two times whose names do not overlap


def write(choice: Choice, path: str) -> None:
    """Raises Refusal for a name that ends on no format known, and OSError."""
    draw(choice).savefig(path)


def refuse(path: str) -> None:
    if Path(path).suffix not in FORMATS:
        raise Refusal(f"figure {path!r} is in no known format; expected a name that ends on {', '.join(FORMATS)}")


def draw(choice: Choice) -> Figure:
    """Of each model and image the fastest row of the Pareto set."""
    patches = sorted(set(choice.rows["patch"]))
    figure = Figure(figsize=(3.6 * len(patches) + 0.8, 4.8), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(patches), sharey=True, sharex=True, squeeze=False)[0]
    figure.suptitle(f"{choice.target.title}, {choice.target.dtype}: the Pareto set", fontsize=11)
    for panel, patch in zip(panels, patches, strict=True):
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, alpha=0.25)
        panel.set_title(f"patches of {patch} pixels", fontsize=9)
        panel.set_xlabel("side of the square image (pixels)")
        _lines(choice, panel, choice.rows[choice.rows["patch"] == patch])
        if choice.asked.budget.latency and not choice.asked.throughput:
            panel.axhline(1e3 * choice.asked.budget.latency, color="#7f7f7f", lw=0.8, ls="--")
    _axis(panels[0], choice.asked.throughput)
    least, most = choice.asked.images
    panels[0].xaxis.set_major_formatter(FuncFormatter(lambda side, _: f"{side:g}" if side >= least else ""))
    panels[0].set_xlim(least - 0.4 * (most - least + 1), most + 0.04 * (most - least + 1))  # room for the names
    return figure


def _lines(choice: Choice, panel: Axes, rows: Rows) -> None:
    """Named where they begin; one that begins where another does is dotted and has no name."""
    names = sorted({choice.programs[n].variant.name for n in rows["program"]}, key=len)
    begun: list[float] = []
    for name in names:
        own = rows[[choice.programs[n].variant.name == name for n in rows["program"]]]
        own = own[np.lexsort((own["seconds"] / own["batch"], own["image"]))]
        own = own[np.unique(own["image"], return_index=True)[1]]
        times = 1e3 * own["seconds"] / own["batch"]
        share = np.log(own["parameters"][0] / LEAST) / np.log(MOST / LEAST)
        color = colormaps["viridis_r"](0.15 + 0.85 * share)
        same = any(abs(np.log(times[0] / other)) < ROOM for other in begun)
        panel.plot(own["image"], times, color=color, lw=1.4, ls=":" if same else "-", marker="o", ms=1 if same else 2.5)
        if not same:
            begun.append(times[0])
            place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
            panel.annotate(name, (own["image"][0], times[0]), xytext=(-4, 0), fontsize=7, color=color, **place)


def _axis(panel: Axes, throughput: bool) -> None:
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.set_ylabel("predicted time of an image" + (" at the best batch (ms)" if throughput else " alone (ms)"))
