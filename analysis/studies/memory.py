"""Peak memory beside its closed form."""

from __future__ import annotations

import pandas as pd

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, axes, color_of, curves, log_y, mark_x, setting, studies
from vitbench.case import ITEMSIZE


class Memory(Study):
    name = "memory"
    question = "How does peak memory compare with its closed form?"
    place = 30

    def answer(self, run: Run) -> Answer | None:
        cases = run.cases
        known = cases[cases["peak_bytes"].notna() & cases["closed_peak_bytes"].notna()].copy()
        if known.empty:
            return None
        known["off"] = known["peak_bytes"].astype(float) / known["closed_peak_bytes"].astype(float) - 1
        groups = [(str(name), group) for name, group in known.groupby("backend")]
        colors = color_of([name for name, _ in groups])
        figure, (every, growing) = axes(2, 5.2)
        for name, group in groups:
            sizes = group["closed_peak_bytes"] / 1e6, group["peak_bytes"] / 1e6
            every.plot(*sizes, "o", ms=4, alpha=0.7, color=colors[name], label=name)
        ends = known["closed_peak_bytes"].agg(["min", "max"]) / 1e6
        every.plot(ends, ends, "k--", lw=0.8, label="equal")
        log_y(every)
        every.set(xscale="log", xlabel="closed form, MB", ylabel="measured, MB")
        every.set_title("every case", fontsize=9)
        longest = _longest(known)
        for row, curve in longest:
            growing.plot(curve["tokens"], curve["closed_peak_bytes"] / 1e6, "-", lw=1, color=colors[row["backend"]])
            growing.plot(
                curve["tokens"], curve["peak_bytes"] / 1e6, "o", color=colors[row["backend"]], label=row["backend"]
            )
            growing.set_title(f"{setting(row)}, core\npoints measured, lines closed form", fontsize=9)
        log_y(growing)
        growing.set(xlabel="tokens N", ylabel="MB held at the peak")
        mark_x(growing, [size for _, curve in longest for size in curve["tokens"]])
        every.legend(fontsize=8, frameon=False)
        if longest:
            growing.legend(fontsize=8, frameon=False)
        worst, exact = known["off"].abs().max(), int((known["off"] == 0).sum())
        sentence = (
            f"The measured peak equals the closed form to the byte in {exact} of {len(known)} cases that have one; "
            f"the largest difference is {worst:.2%}."
        )
        return Answer(sentence, pd.DataFrame([_row(name, group) for name, group in groups]), figure)


def _longest(known: pd.DataFrame) -> list[tuple[Row, pd.DataFrame]]:
    """Of the curves over global cores, those of the setting that has most sizes."""
    cores = known[(known["scope"] == "core") & (known["operator"] == "global")]
    found = list(curves(cores, ("height", "width")))
    most = max(found, key=lambda pair: len(pair[1]), default=None)
    return [pair for pair in found if most is not None and setting(pair[0]) == setting(most[0])]


def _row(backend: str, group: pd.DataFrame) -> dict[str, object]:
    largest = group.sort_values("peak_bytes").iloc[-1]
    return {
        "backend": backend,
        "cases": len(group),
        "largest difference": f"{group['off'].abs().max():.3%}",
        "equal to the byte": f"{int((group['off'] == 0).sum())}",
        "largest peak": text.quantity(largest["peak_bytes"], "B"),
        "its closed form": text.quantity(largest["closed_peak_bytes"], "B"),
        "its score matrix": text.quantity(largest["score_elements"] * ITEMSIZE[largest["dtype"]], "B"),
        "of": largest["id"],
    }


studies.add(Memory())
