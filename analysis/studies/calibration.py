"""How far apart two measurements of the same thing come."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.noise import Measure, apart, quieter, twins
from analysis.study import Answer, Row, Study, axes, studies
from vitbench.interval import SETTLED_PASSES, Interval


class Calibration(Study):
    name = "calibration"
    question = "How far apart do two measurements of the same thing come?"
    place = 95

    def answer(self, run: Run) -> Answer | None:
        cases = run.cases
        measure, floor = quieter(cases)
        found = [(one, other, interval) for one, other in twins(cases) if (interval := measure(one, other))[0] > 0]
        if not found:
            return None
        figure, (panel,) = axes(1, 8.0)
        figure.set_figheight(1.4 + 0.32 * len(found))
        for y, (_, _, (middle, low, high)) in enumerate(found):
            panel.plot([low, high], [y, y], color="#0072b2", lw=1.4)
            panel.plot(middle, y, "o", color="#0072b2", ms=4)
        if floor is not None:
            panel.axvspan(1 / (1 + floor), 1 + floor, color="k", alpha=0.07, label=f"noise floor, {floor:.1%}")
            panel.legend(fontsize=8, frameon=False)
        panel.axvline(1, color="k", lw=0.8)
        panel.set_yticks(range(len(found)), [_label(one) for one, _, _ in found], fontsize=7.5)
        panel.set(
            xlabel="time of the second over the first, pass by pass (no line: fewer than 6 passes)",
            ylim=(-0.6, len(found) - 0.4),
        )
        sentence = _sentence(measure, floor, [interval for _, _, interval in found])
        return Answer(sentence, pd.DataFrame([_line(*pair) for pair in found]), figure)


def _sentence(measure: Measure, floor: float | None, found: list[Interval]) -> str:
    known = [(low, high) for _, low, high in found if np.isfinite(low)]
    apart_by = (
        f"{len(found)} pairs of identical cases came {np.median([apart(i) for i in found]):.1%} apart in the median"
    )
    how = ", times divided by the canary around them" if measure.adjusted else ""
    if floor is None:
        return f"{apart_by}{how}; with fewer than {SETTLED_PASSES} passes there is no noise floor, and no verdict."
    sides = sum(low > 1 or high < 1 for low, high in known)
    return (
        f"The noise floor is {floor:.1%}: no difference below it is called one. {apart_by}{how}; in {sides} "
        f"of the {len(known)} that have one, the 95 % interval lies on one side of 1."
    )


def _label(row: Row) -> str:
    return f"{row['operator']} {row['backend']} N={row['tokens']}, D={row['dim']}, {row['scope']}"


def _line(one: Row, other: Row, interval: Interval) -> dict[str, object]:
    return {
        "case": one["id"],
        "first": text.seconds(one["seconds"], one["low"], one["high"]),
        "second": text.seconds(other["seconds"], other["low"], other["high"]),
        "second over first": text.ratio(*interval),
        "passes": len(one["by_pass"].keys() & other["by_pass"].keys()),
    }


studies.add(Calibration())
