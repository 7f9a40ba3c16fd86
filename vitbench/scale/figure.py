"""How a model grows, as a figure: MACs, the share of pairs and, where there is any, padding, by the side of images."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from vitbench.refusal import Refusal
from vitbench.scale.growth import Scale
from vitbench.scale.law import Law
from vitbench.scale.page import halved, rule
from vitbench.scale.points import PARTS
from vitbench.scale.waste import over

FORMATS = (".png", ".pdf", ".svg")
COLORS = {"total": "#1b1b1b", "linear": "#0072b2", "pairs": "#d55e00", "weights": "#7f7f7f"}
NONE = "#009e73"
LABELS = {
    "total": "total",
    "linear": "weights x data (linear)",
    "pairs": "data x data (pairs)",
    "weights": "weights x weights",
}
DENSE = 40  # sizes from which on they are a line of their own


def write(scale: Scale, path: str) -> None:
    """Raises Refusal for a name that ends on no format known, and OSError."""
    if Path(path).suffix not in FORMATS:
        raise Refusal(f"figure {path!r} is in no known format; expected a name that ends on {', '.join(FORMATS)}")
    draw(scale).savefig(path)


def draw(scale: Scale) -> Figure:
    """Two panels, three where MACs differ from the law."""
    padded = any(over(scale.law, point) for point in scale.sizes)
    figure = Figure(figsize=(6.2 * (3 if padded else 2), 4.8), dpi=110, layout="constrained")
    panels = list(figure.subplots(1, 3 if padded else 2))
    figure.suptitle(f"{scale.source}, batch {scale.batch}, inference", fontsize=11)
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, alpha=0.25)
        panel.set_xlabel("side of the square image S (pixels)")
    _macs(scale, panels[0], padded)
    _share(scale, panels[1], padded)
    if padded:
        _padding(scale, panels[2])
    return figure


def _macs(scale: Scale, panel: Axes, padded: bool) -> None:
    for part in (*PARTS, "total"):
        macs = [point.macs if part == "total" else getattr(point, part) for point in scale.sizes]
        law = [value / 1e9 for _, value in _curve(scale, part)]
        if any(macs):
            _draw(scale, panel, part, [one / 1e9 for one in macs], law, padded)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.set_ylabel("GMACs (1 MAC = 2 FLOPs)")
    if scale.law:
        panel.set_title(_formula(scale.law), fontsize=9)
        if padded:
            panel.plot([], [], color="#555555", lw=1, ls="--", label=f"law of multiples of {scale.law.period} pixels")
    _mark_half(scale, panel)
    panel.legend(fontsize=8, frameon=False)


def _share(scale: Scale, panel: Axes, padded: bool) -> None:
    shares = [point.pairs / point.macs if point.macs else 0.0 for point in scale.sizes]
    curves = zip(_curve(scale, "pairs"), _curve(scale, "total"), strict=True)
    _draw(scale, panel, "pairs", shares, [pairs / total for (_, pairs), (_, total) in curves], padded)
    panel.yaxis.set_major_formatter(PercentFormatter(1))
    if max(shares) > 0.4:
        panel.axhline(0.5, color="#7f7f7f", lw=0.8)
    panel.set(ylabel="share of data x data in all MACs", ylim=(0, min(1.15 * max(shares), 1) or 1))
    if scale.law and scale.half:
        panel.set_title(halved(scale.law, scale.half), fontsize=9)
    _mark_half(scale, panel)


def _padding(scale: Scale, panel: Axes) -> None:
    assert scale.law
    images, shares = [one.image for one in scale.sizes], [over(scale.law, one) or 0.0 for one in scale.sizes]
    if len(images) >= DENSE:
        panel.step(images, shares, where="mid", color=COLORS["total"], lw=0.9)
    else:
        panel.vlines(images, 0, shares, color=COLORS["total"], lw=1)
        panel.plot(images, shares, color=COLORS["total"], ls="", marker="o", ms=4)
    if whole := [image for image, share in zip(images, shares, strict=True) if not share]:
        panel.plot(whole, [0] * len(whole), color=NONE, ls="", marker="o", ms=5, label="no padding")
        panel.legend(fontsize=8, frameon=False)
    panel.yaxis.set_major_formatter(PercentFormatter(1))
    panel.set_ylabel("MACs over the law")
    panel.set_title(f"padding; the law holds at multiples of {scale.law.period} pixels", fontsize=9)


def _draw(scale: Scale, panel: Axes, part: str, counted: list[float], law: list[float], padded: bool) -> None:
    """The law as a line, dashed where sizes differ from it; sizes as points, or as a line where they are many."""
    images, color = [point.image for point in scale.sizes], COLORS[part]
    dense = len(images) >= DENSE
    if law and (padded or not dense):
        xs = [x for x, _ in _curve(scale, part)]
        panel.plot(xs, law, color=color, lw=1 if padded else 1.4, ls="--" if padded else "-")
    style: dict[str, Any] = (
        {"lw": 1.0 if part == "total" else 1.8} if dense else {"ls": "" if law else "-", "marker": "o", "ms": 4}
    )
    panel.plot(images, counted, color=color, label=LABELS[part], **style)


def _curve(scale: Scale, part: str) -> list[tuple[float, float]]:
    """Sizes and MACs by the law, between the first size and the last; empty without a law."""
    if scale.law is None:
        return []
    found = scale.law.total if part == "total" else scale.law.parts[part]
    first, last = scale.sizes[0].image, scale.sizes[-1].image
    sides = [first + Fraction(last - first, 200) * n for n in range(201)] if last > first else [Fraction(first)]
    return [(float(side), float(found(scale.law.x(side)))) for side in sides]


def _mark_half(scale: Scale, panel: Axes) -> None:
    image = scale.half.image if scale.half else None
    if image and scale.sizes[0].image <= image <= scale.sizes[-1].image:
        panel.axvline(image, color=COLORS["pairs"], lw=0.9, ls=":")
        panel.annotate(
            f"half at {image}",
            (image, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8,
            color=COLORS["pairs"],
        )


def _formula(law: Law) -> str:
    text = f"total = {law.total.written(law.variable)}\nN = {rule(law)}"
    return re.sub(r"\^(\d)", lambda power: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(power[1])], text)
