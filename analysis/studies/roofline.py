"""How far each case is from what this machine attains: the roofline of Williams, Waterman and Patterson, 2009."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Study, axes, color_of, studies
from vitbench.operator import SCOPES

ATTAINABLE = ["attainable_macs_per_second", "attainable_bytes_per_second"]
MARKS = dict(zip(SCOPES, "o^sD", strict=True))
ROOF = "#444444"


class Roofline(Study):
    name = "roofline"
    question = "How far is each case from what this machine attains?"
    place = 90

    def answer(self, run: Run) -> Answer | None:
        cases = run.cases
        if not {*ATTAINABLE, "roofline_share"} <= set(cases.columns):
            return None
        known = cases[cases["roofline_share"].notna()].copy()  # no time, no share
        if known.empty:
            return None
        known["family"] = known["backend"].str.partition(".")[0]
        table = pd.DataFrame([_row(str(name), group) for name, group in known.groupby("backend", sort=False)])
        return Answer(_sentence(known), table, _figure(known))


def _percent(share: float) -> str:
    return f"{text.number(100 * share)}%"


def _row(backend: str, group: pd.DataFrame) -> dict[str, object]:
    ranked = group.sort_values("roofline_share")
    return {
        "backend": backend,
        "cases": len(group),
        "median share of the roofline": _percent(ranked["roofline_share"].median()),
        "best": _percent(ranked["roofline_share"].iloc[-1]),
        "nearest case": ranked["id"].iloc[-1],
        "worst": _percent(ranked["roofline_share"].iloc[0]),
        "farthest case": ranked["id"].iloc[0],
    }


def _sentence(known: pd.DataFrame) -> str:
    ranked = known.sort_values("roofline_share")
    far, near = ranked["id"].iloc[0], ranked["id"].iloc[-1]
    left = int((known["intensity"] < _ridge(known)).sum()) or "none"
    rates = ", ".join(
        f"{text.quantity(2 * group[ATTAINABLE[0]].max(), 'FLOP/s')} in {dtype}"
        for dtype, group in known.groupby("dtype", sort=False)
    )
    median, least, most = (_percent(float(ranked["roofline_share"].quantile(part))) for part in (0.5, 0, 1))
    parts = [
        f"The median of {len(known)} reaches {median} of the roofline, the farthest {least} ({far}), "
        f"the nearest {most} ({near}).",
        f"Attainable here: {rates}, and {text.quantity(known[ATTAINABLE[1]].max(), 'B/s')}.",
        f"Bandwidth sets the roof of {left} of them, the rate of products that of the others.",
        *_above(known),
    ]
    return " ".join(parts)


def _ridge(known: pd.DataFrame) -> pd.Series[float]:
    """FLOPs per byte where the slanted line meets the flat one."""
    return 2 * known[ATTAINABLE[0]] / known[ATTAINABLE[1]]


def _above(known: pd.DataFrame) -> list[str]:
    """Why points lie above either line, where some do."""
    slanted, flat = known[known["bandwidth_share"] > 1], int((known["rate_share"] > 1).sum())
    sentences = []
    if len(slanted):
        why = "the caches are warm, and" if set(slanted["device"]) == {"cpu"} else "that is,"
        verb = "lies" if len(slanted) == 1 else "lie"
        sentences.append(
            f"{len(slanted)} {verb} above the slanted line: {why} bytes found in a cache do not wait for memory."
        )
    if flat:
        verb = "lies" if flat == 1 else "lie"
        sentences.append(f"{flat} {verb} above the flat line, which is the best product seen and no limit.")
    return sentences


def _figure(known: pd.DataFrame) -> Figure:
    groups = [(str(name), group) for name, group in known.groupby("dtype", sort=False)]
    colors = color_of(sorted(known["family"]))
    figure, panels = axes(len(groups), 7.6 if len(groups) == 1 else 5.4)
    figure.set_figheight(figure.get_figheight() * 1.15)
    bends = pd.concat([known["intensity"], _ridge(known)])
    for panel, (dtype, group) in zip(panels, groups, strict=True):
        _roof(panel, group, bends.min() / 2, bends.max() * 2)
        for (family, scope), part in group.groupby(["family", "scope"]):
            _points(panel, part, colors[str(family)], MARKS[str(scope)])
        panel.set_title(f"{dtype}, {group['device'].iloc[0]}: {len(group)} measured", fontsize=9)
        _name(panel)
    figure.legend(handles=_legend(known, colors), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _roof(panel: Axes, group: pd.DataFrame, low: float, high: float) -> None:
    """The flat line at the product rate; the slanted one at bandwidth x intensity, dotted where products are slower."""
    flat, bandwidth = 2 * group[ATTAINABLE[0]].max(), group[ATTAINABLE[1]].max()
    ridge = flat / bandwidth
    panel.plot([low, ridge, high], [low * bandwidth, flat, flat], color=ROOF, lw=1.4)
    panel.plot([ridge, 2 * ridge], [flat, 2 * flat], ":", color=ROOF, lw=1.2)
    for words, end, offset in (("FLOP/s", (high, flat), (0, 4)), ("B/s", (2 * ridge, 2 * flat), (-5, -4))):
        label = text.quantity(flat if words == "FLOP/s" else bandwidth, words)
        panel.annotate(label, end, offset, textcoords="offset points", ha="right", fontsize=8)


def _points(panel: Axes, part: pd.DataFrame, color: str, mark: str) -> None:
    """2 x MACs a second with the interval of the time, at the intensity of each case."""
    flops = 2 * part["macs"].astype(float)
    rate = flops / part["seconds"]
    errors = [rate - flops / part["high"], flops / part["low"] - rate]
    panel.errorbar(part["intensity"], rate, errors, fmt="none", ecolor=color, alpha=0.35, lw=0.8)
    panel.plot(part["intensity"], rate, mark, ms=4.5, mfc="none", color=color)


def _name(panel: Axes) -> None:
    """Logarithmic axes in plain numbers, with their units."""
    panel.set(xscale="log", yscale="log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text.quantity(value, "", 1)))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_formatter(NullFormatter())
    panel.tick_params(labelsize=8)
    panel.set(xlabel="FLOPs per byte of the least traffic", ylabel="FLOP/s (2 x MACs per second)")


def _legend(known: pd.DataFrame, colors: dict[str, str]) -> list[Line2D]:
    families = [Line2D([], [], color=color, marker="o", ls="", label=name) for name, color in colors.items()]
    used = [scope for scope in SCOPES if (known["scope"] == scope).any()]
    scopes = [Line2D([], [], color="k", marker=MARKS[scope], mfc="none", ls="", label=scope) for scope in used]
    dotted = Line2D([], [], color=ROOF, ls=":", label="bandwidth alone")
    return [*families, *scopes, Line2D([], [], color=ROOF, label="attainable"), dotted]


studies.add(Roofline())
