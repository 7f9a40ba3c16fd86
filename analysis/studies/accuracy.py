"""Accuracy of small models trained on scikit-learn's digits, beside what they cost.

Answered from accuracy.json in the run's folder, which `python -m benchmarks.accuracy` writes. Accuracies are means over
the seeds, with the lowest and the highest; differences are taken seed by seed, in percentage points. Seconds are
medians over rounds of one process, their intervals bootstrap intervals over rounds, then steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from analysis import text
from analysis.accuracy import FILE, Trained, read
from analysis.load import Run
from analysis.study import Answer, Study, axes, color_of, studies
from vitbench.interval import Interval

NONE = "none"  # positions of a model that has none
CHANCE = 0.1


class Pair(NamedTuple):
    """The same model with positions and without."""

    placed: Trained
    bare: Trained


class Accuracy(Study):
    name = "accuracy"
    question = "What do patches, positions and windows buy in accuracy?"
    place = 220
    of_records = False

    def answer(self, run: Run) -> Answer | None:
        path = run.folder / FILE
        if not path.exists():
            return None
        rows, held_out, processor = read(path)
        pairs = [
            Pair(placed, bare)
            for bare in rows
            for placed in rows
            if bare.positions == NONE != placed.positions and (bare.kind, bare.patch) == (placed.kind, placed.patch)
        ]
        sentence = " ".join([_best(rows, held_out, processor), *_lost(pairs), *_beside(rows, pairs)])
        return Answer(sentence, pd.DataFrame(map(_line, rows)), _figure(rows))


def _best(rows: Iterable[Trained], held_out: int, processor: str) -> str:
    best = max(rows, key=lambda row: row.accuracy)
    return (
        f"Of small models trained alike on scikit-learn's digits, {best.name} is the best: it names "
        f"{text.percent(*best.accuracy)} of {held_out} held-out images right (mean and range of "
        f"{len(best.accuracies)} seeds), for {text.quantity(best.macs, 'MAC')} an image and "
        f"{text.seconds(*best.step)} a training step of {best.batch} images ({processor})."
    )


def _lost(pairs: Sequence[Pair]) -> list[str]:
    """A sentence, if there is anything to say."""
    if not pairs:
        return []
    each = "; ".join(
        f"{_points(lost := placed.points_above(bare))} with patches of {placed.patch} ({placed.tokens} tokens, from "
        f"{placed.accuracy[0]:.1%} to {bare.accuracy[0]:.1%}{'' if lost[1] > 0 else ', not with every seed'})"
        for placed, bare in pairs
    )
    return [f"Without positions {pairs[0].bare.kind} loses, in percentage points: {each}."]


def _beside(rows: Iterable[Trained], pairs: Sequence[Pair]) -> list[str]:
    """A sentence for each model that is of no pair, against the one with positions that has as many tokens."""
    others = [row for row in rows if not any(row in pair for pair in pairs)]
    return [
        f"{row.name} on as many tokens as {peer.name} ({row.tokens}) comes {_points(row.points_above(peer))} points "
        f"above it, with {text.ratio(row.macs / peer.macs)} its MACs and {text.ratio(*row.times(peer))} its seconds."
        for row in others
        for peer, _ in pairs
        if peer.tokens == row.tokens
    ]


def _points(interval: Interval) -> str:
    middle, low, high = interval
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def _line(row: Trained) -> dict[str, object]:
    return {
        "model": row.name,
        "positions": row.positions,
        "patch": row.patch,
        "tokens": row.tokens,
        "parameters": f"{row.parameters:,}",
        "MACs an image": text.quantity(row.macs, "MAC"),
        "MACs a training step": text.quantity(row.training_macs, "MAC"),
        "a training step": text.seconds(*row.step),
        "accuracy": text.percent(*row.accuracy),
    }


def _figure(rows: Sequence[Trained]) -> Figure:
    figure, (macs, seconds) = axes(2)
    _marks(macs, rows, lambda row: (row.macs / 1e3,) * 3)
    macs.set_xlabel("kMACs an image (inference)")
    _marks(seconds, rows, lambda row: tuple(1e3 * end for end in row.step))
    seconds.set_xlabel(f"ms a training step of {rows[0].batch} images")
    return figure


def _marks(panel: Axes, rows: Sequence[Trained], along: Callable[[Trained], tuple[float, ...]]) -> None:
    """Filled with positions, their names above and in turn nearer and farther; hollow without, names below."""
    colors, turn = color_of([row.kind for row in rows]), cycle((5, 20))
    for row in sorted(rows, key=along):
        (x, *ends), (y, low, high), color = along(row), row.accuracy, colors[row.kind]
        bare = row.positions == NONE
        panel.plot(ends, [y, y], color=color, lw=1)
        panel.plot([x, x], [low, high], color=color, lw=1)
        panel.plot(x, y, "o", color=color, mfc="white" if bare else color, ms=6)
        end, aside, va = (low, -6, "top") if bare else (high, next(turn), "bottom")
        panel.annotate(row.name, (x, end), (0, aside), textcoords="offset points", ha="center", va=va, fontsize=8)
    for label, face in (("with positions", "k"), ("without", "white")):
        panel.plot([], [], "ko", mfc=face, ms=6, label=label)
    panel.axhline(CHANCE, color="k", lw=0.8, ls="--", label="chance")
    panel.margins(x=0.18)
    panel.set(xscale="log", ylim=(0, 1.15), ylabel="accuracy, mean and range of seeds")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.minorticks_off()
    panel.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 0.12))


studies.add(Accuracy())
