"""Every operator on one grid: MACs beside seconds, and where attention costs more than a convolution."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from analysis import text
from analysis.load import Run
from analysis.study import Answer, Row, Study, against, asked_by, axes, log_x, shape, studies, times, told

SAME = ["batch", "height", "width", "dim", "heads", "dtype", "mode"]
PLAIN, DENSE, SEPARABLE = "global", "convolution3", "convolution7-depthwise1"


class Operators(Study):
    name = "operators"
    question = "What does every operator cost on the same grid, and where does attention cost more than a convolution?"
    place = 15

    def answer(self, run: Run) -> Answer | None:
        measured = asked_by(run.cases, "operators", scope="layer")
        fastest = measured.sort_values("seconds").drop_duplicates(["operator", *SAME])  # on its best backend
        plain = fastest[fastest["operator"] == PLAIN]
        found = against(fastest, plain, SAME, ["macs"])
        if len(found) <= len(plain):
            return None
        found["macs_ratio"] = found["macs"].astype(float) / found["macs_other"].astype(float)
        groups = [group.sort_values("seconds") for _, group in found.groupby(SAME, sort=False) if len(group) > 1]
        groups.sort(key=lambda group: group["tokens"].iloc[0])
        most = max(map(len, groups))
        shown = [group for group in groups if len(group) > most / 2]  # the others are in the table
        figure, drawn = axes(len(shown), 7.2)
        figure.set_figheight(1.6 + 0.24 * most)
        for panel, group in zip(drawn, shown, strict=True):
            _draw(panel, group)
        table = pd.DataFrame([_row(row) for group in groups for _, row in group.iterrows()])
        return Answer(_sentence(shown), table, figure)


def _draw(panel: Axes, group: pd.DataFrame) -> None:
    """A row an operator, fastest at the bottom: its time, and the MACs, both over global attention's."""
    rows = range(len(group))
    ends = [group["ratio"] - group["ratio_low"], group["ratio_high"] - group["ratio"]]
    panel.errorbar(group["ratio"], rows, xerr=ends, fmt="o", ms=5, capsize=2, color="#0072b2", label="seconds")
    panel.plot(group["macs_ratio"], rows, "D", ms=5, mfc="none", color="#d55e00", label="MACs")
    panel.axvline(1, color="k", lw=0.8, ls=":")
    panel.set_yticks(list(rows), list(group["operator"]), fontsize=8)
    log_x(panel)
    panel.set(xlabel="over global attention, its fastest backend each", title=f"N={group['tokens'].iloc[0]}")
    panel.legend(fontsize=8, frameon=False, loc="lower right")


def _sentence(groups: list[pd.DataFrame]) -> str:
    last = groups[-1].set_index("operator", drop=False)
    first = last.iloc[0]
    n, dim = int(first["tokens"]), int(first["dim"])
    cheaper = last[last["ratio_high"] < 1]
    told_ = (
        f"At N = {n} ({shape(first)}) {len(cheaper)} of {len(last) - 1} other operators surely take less time than "
        f"global attention; the fastest is {first['operator']} with {told(first)} its time and "
        f"{text.ratio(first['macs_ratio'])} its MACs."
    )
    off = last.assign(off=last["ratio"] / last["macs_ratio"]).sort_values("off").iloc[-1]
    told_ += (
        f" MACs mislead most for {off['operator']}: {text.ratio(off['macs_ratio'])} the MACs, {told(off)} the time."
    )
    if {PLAIN, DENSE, SEPARABLE} <= set(last.index):
        dense, separable = (text.ratio(*times(last.loc[PLAIN], last.loc[name])) for name in (DENSE, SEPARABLE))
        told_ += (
            f" Global attention takes {dense} the time of a dense 3x3 convolution and {separable} that of a 7x7 "
            f"depthwise one; in MACs it overtakes the dense one (9ND^2) at N = 5D/2 = {5 * dim // 2}."
        )
    return told_


def _row(row: Row) -> dict[str, object]:
    return {
        "operator": row["operator"],
        "tokens": row["tokens"],
        "batch": row["batch"],
        "backend": row["backend"],
        "MACs": text.quantity(row["macs"], "MAC"),
        "parameters": text.quantity(row["parameters"], ""),
        "time": text.seconds(row["seconds"], row["low"], row["high"]),
        "time over global": told(row),
        "MACs over global": text.ratio(row["macs_ratio"]),
        "rate": text.quantity(row["macs_per_second"], "MAC/s"),
        "peak": text.quantity(row["peak_bytes"], "B"),
        "dtype": row["dtype"],
        "mode": row["mode"],
    }


studies.add(Operators())
