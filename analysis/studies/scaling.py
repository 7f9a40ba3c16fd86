"""What the division by sqrt(d) is for: scores, softmax weights and gradients as the head dimension grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import text
from analysis.load import Run
from analysis.scaling import FP16_MAX, Array, Scaling, digit_tokens, measure
from analysis.study import Answer, Study, axes, log_y, mark_x, studies

DIMENSIONS = (4, 16, 64, 256, 1024)
LARGER = 10  # times the size of q and k, for what a trained layer may make of them
RAW, SCALED, REACH = "#d55e00", "#0072b2", "#666666"


class ScoreScaling(Study):
    name = "scaling"
    question = "Why are scores divided by sqrt(d)?"
    place = 210
    of_records = False

    def answer(self, run: Run) -> Answer | None:
        tokens = digit_tokens()
        if tokens is None:
            return None
        found = [measure(tokens, d) for d in DIMENSIONS]
        table = pd.DataFrame([_row(of_d) for of_d in found])
        return Answer(f"{_softmax(found)} {_fp16(found)}", table, _figure(found))


def _softmax(found: list[Scaling]) -> str:
    first, last = found[0], found[-1]
    return (
        f"Without it, scores of q and k whose entries have variance 1 spread as sqrt(d), by {text.number(first.std)} "
        f"at d = {first.d} and {text.number(last.std)} at d = {last.d}; the softmax hardens (largest weight "
        f"{first.raw.largest:.2f}, then {last.raw.largest:.2f} in the mean) and passes less gradient (norm of its "
        f"Jacobian {first.raw.jacobian:.3f}, then {last.raw.jacobian:.3f}). With it, whatever d, the largest weight is "
        f"{_range([of_d.scaled.largest for of_d in found], 2)} and the norm "
        f"{_range([of_d.scaled.jacobian for of_d in found], 3)} "
        "(16 patches of scikit-learn's digits, random weights, no training)."
    )


def _fp16(found: list[Scaling]) -> str:
    last, count = found[-1], sum(of_d.count for of_d in found)
    lost = sum(of_d.overflowing * of_d.count for of_d in found)
    return (
        f"Stored in fp16, which ends at {FP16_MAX:,.0f}, {lost:.0f} of the {count:,} unscaled scores overflow. "
        f"The largest at d = {last.d} is {text.number(last.largest)}; growing as sqrt(d), it would overflow at a d of "
        f"about {_about(last.overflow_d())}. No score, and no sum on the way to it, exceeds the product of the lengths "
        f"of q and k, {text.number(last.reach)} at most. Where both point the same way the score is that product, and "
        f"growing as d would overflow at about {_about(last.overflow_d_aligned())}. With q and k {LARGER} times as "
        f"large it would be at about {_about(last.overflow_d(LARGER))} and {_about(last.overflow_d_aligned(LARGER))}."
    )


def _range(values: list[float], places: int) -> str:
    return f"{min(values):.{places}f} to {max(values):.{places}f}"


def _about(value: float) -> str:
    """To one significant digit; a largest value is no steadier than that."""
    return f"{float(f'{value:.0e}'):,.0f}"


def _row(of_d: Scaling) -> dict[str, str]:
    return {
        "d": str(of_d.d),
        "spread of scores": text.number(of_d.std),
        "spread of scores, scaled": text.number(of_d.std / np.sqrt(of_d.d)),
        "largest of 16 weights, mean": f"{of_d.raw.largest:.3f}",
        "largest of 16 weights, mean, scaled": f"{of_d.scaled.largest:.3f}",
        "norm of the Jacobian": f"{of_d.raw.jacobian:.3f}",
        "norm of the Jacobian, scaled": f"{of_d.scaled.jacobian:.3f}",
        "largest score": text.number(of_d.largest),
        "largest length of q times length of k": text.number(of_d.reach),
        "scores beyond fp16": text.share(of_d.overflowing),
    }


def _figure(found: list[Scaling]) -> Figure:
    figure, (scores, largest, jacobian) = axes(3, 4.8)
    root = np.sqrt(DIMENSIONS)
    _curve(scores, [of_d.reach for of_d in found], REACH, "length of q times length of k, largest", marker="^", lw=0.8)
    _curve(scores, [of_d.largest for of_d in found], RAW, "raw score, largest", marker="s", lw=0.8)
    _curve(scores, [of_d.std for of_d in found], RAW, "raw score, spread")
    _curve(scores, np.array([of_d.std for of_d in found]) / root, SCALED, "score over sqrt(d), spread")
    scores.axhline(FP16_MAX, color="k", lw=0.8, ls="--")
    scores.text(DIMENSIONS[-1], 1.2 * FP16_MAX, "largest number of fp16", ha="right", fontsize=8)
    log_y(scores)
    scores.set(ylabel="score", ylim=(0.5, 3e5))
    scores.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0, 0.88))
    _curve(largest, [of_d.raw.largest for of_d in found], RAW, "raw scores")
    _curve(largest, [of_d.scaled.largest for of_d in found], SCALED, "scores over sqrt(d)")
    largest.set(ylabel="largest softmax weight, mean over queries", ylim=(0, 1))
    _curve(jacobian, [of_d.raw.jacobian for of_d in found], RAW, "raw scores")
    _curve(jacobian, [of_d.scaled.jacobian for of_d in found], SCALED, "scores over sqrt(d)")
    jacobian.set(ylabel="norm of the softmax's Jacobian, mean over queries", ylim=(0, None))
    for panel in (scores, largest, jacobian):
        panel.set_xlabel("head dimension d")
        mark_x(panel, DIMENSIONS)
    largest.legend(fontsize=8, frameon=False, loc="upper left")
    jacobian.legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def _curve(
    panel: Axes, values: Sequence[float] | Array, color: str, label: str, marker: str = "o", lw: float = 1.4
) -> None:
    panel.plot(DIMENSIONS, values, color=color, label=label, marker=marker, ms=4, lw=lw)


studies.add(ScoreScaling())
