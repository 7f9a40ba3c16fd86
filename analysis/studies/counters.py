"""Counters of MACs against the exact count, on models of many kinds.

Answered from counters.json in the run's folder, which `python -m benchmarks.counters` writes. An error is that of the
MACs, whatever unit the counter prints. Seconds and bytes are of one count each, above imports and the built model.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

from analysis import text
from analysis.counters import FILE, OWN, Counted, Counters, read
from analysis.load import Run
from analysis.study import Answer, Study, log_x, studies

RIGHT = 0.005  # per cent; what rounds to 0.00


class CountersStudy(Study):
    name = "counters"
    question = "Which counter can be believed?"
    place = 5
    of_records = False

    def answer(self, run: Run) -> Answer | None:
        path = run.folder / FILE
        if not path.exists():
            return None
        found = read(path)
        return Answer(_sentence(found), pd.DataFrame([_row(found, name) for name in found.names()]), _figure(found))


def _sentence(found: Counters) -> str:
    others = [name for name in found.names() if name != OWN]
    exact = [name for name in others if all(map(right, found.of(name)))]
    rest = [name for name in others if name not in exact]
    given = [one for one in found.counts if one.percent is not None and one.counter in rest]
    wrong = [one for one in given if not right(one)]
    always = f"{_listed(exact) or 'none'} {'are' if len(exact) > 1 else 'is'}"
    told = (
        f"Against the exact count of {len(found.exact)} models (vitbench's own, which tests hold against unfused "
        f"programs), of {len(others)} counters {always} always right."
    )
    if wrong:
        worst = max(wrong, key=lambda one: abs(one.percent or 0.0))
        told += (
            f" The other {len(rest)} are wrong in {len(wrong)} of their {len(given)} counts, at "
            f"worst by {worst.percent:+.1f} % ({worst.counter}; {worst.model})."
        )
    return told


def right(one: Counted) -> bool:
    return one.percent is not None and abs(one.percent) < RIGHT


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, ["; ".join(names[:-1]), *names[-1:]]))


def _row(found: Counters, name: str) -> dict[str, str]:
    counts = found.of(name)
    errors = {short(one.model): percent(one.percent) for one in counts}
    whys = list(dict.fromkeys(one.why or one.reason for one in counts if not right(one) and (one.why or one.reason)))
    return {
        "counter": name,
        **errors,
        "seconds a count": text.quantity(_median([one.seconds for one in counts]), "s"),
        "memory": text.quantity(_median([one.peak_bytes for one in counts]), "B"),
        "answer changes with": ", ".join(dict.fromkeys(word for one in counts for word in one.changed)) or "-",
        "why": "; ".join(map(str, whys)) or "-",
    }


def percent(value: float | None) -> str:
    """+1.23 %; exact; a dash where there is no count."""
    if value is None:
        return "-"
    return "exact" if value == 0 else f"{value:+.2f} %"


def short(source: str) -> str:
    """Without the size that is the same for all."""
    return source.replace("_patch16_224", "").replace("_patch4_window7_224", "").removesuffix("_224")


def _median(values: list[float | None] | list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _figure(found: Counters) -> Figure:
    names, models = found.names(), list(found.exact)
    figure = Figure(figsize=(1.05 * len(models) + 8.5, 0.5 * len(names) + 2.6), dpi=110, layout="constrained")
    errors, seconds, memory = figure.subplots(1, 3, width_ratios=[1.05 * len(models), 2.6, 2.6], sharey=True)
    _errors(errors, found, names, models)
    for panel, values, unit in (
        (seconds, [_median([one.seconds for one in found.of(name)]) for name in names], "seconds a count, median"),
        (memory, [_megabytes(found.of(name)) for name in names], "MB above the model, median"),
    ):
        for y, value in enumerate(values):
            if value is not None:
                panel.plot(max(value, 0.01), y, "o", color="#0072b2", ms=7)
        log_x(panel)
        panel.set_xlabel(unit)
        panel.grid(True, alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _megabytes(counts: list[Counted]) -> float | None:
    found = _median([one.peak_bytes for one in counts])
    return None if found is None else found / 1e6


def _errors(panel: Axes, found: Counters, names: list[str], models: list[str]) -> None:
    by = {(one.counter, one.model): one for one in found.counts}
    values = np.array([[_value(by.get((name, model))) for model in models] for name in names])
    norm = SymLogNorm(linthresh=1, vmin=-100, vmax=100)
    panel.imshow(np.ma.masked_invalid(values), cmap="RdBu", norm=norm, aspect="auto", alpha=0.75)
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            told = "no count" if np.isnan(value) else "exact" if value == 0 else f"{value:+.2f}"
            color = "white" if abs(value) > 60 else "#1a7a1a" if value == 0 else "black"
            panel.text(x, y, told, ha="center", va="center", fontsize=8, color=color)
    panel.set_xticks(
        range(len(models)), [short(model).replace(":", ":\n") for model in models], fontsize=8, rotation=40
    )
    panel.set_yticks(range(len(names)), names, fontsize=9)
    panel.set_title("error of the MACs, per cent", fontsize=10)
    panel.tick_params(length=0)


def _value(one: Counted | None) -> float:
    return float("nan") if one is None or one.percent is None else one.percent


studies.add(CountersStudy())
