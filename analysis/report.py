"""The report of a run: the studies' answers, how the cases ended, where and how it was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from analysis import text
from analysis.kernels import kernels
from analysis.load import COLUMNS, Run
from analysis.page import Section, png, write_page
from analysis.spending import Spending
from analysis.study import studies
from vitbench.interval import CONFIDENCE, RESAMPLES, SETTLED_PASSES
from vitbench.metric import metrics

NOT_ANSWERED = "Not answered: this run holds no cases for it, or lacks a figure that it needs."


def write_report(run: Run) -> list[Section]:
    """Write report/report.md, its figures, and report.html into the run's folder; returns the sections."""
    sections = [*_answers(run), *_appendix(run)]
    title = f"Attention on {run.environment.get('device_name', 'an unnamed device')}: {run.plan['profile']} run"
    write_page(run.folder, title, sections)
    return sections


def _answers(run: Run) -> list[Section]:
    sections = []
    for study in sorted(studies, key=lambda study: (study.place, study.name)):
        answer = study.answer(run)
        if answer is None:
            sections.append(
                Section(
                    study.name,
                    study.question,
                    NOT_ANSWERED,
                )
            )
        else:
            sections.append(Section(study.name, study.question, answer.sentence, png(answer.figure), answer.table))
    return sections


def _appendix(run: Run) -> list[Section]:
    glossary = {**COLUMNS, **{metric.name: metric.description for metric in metrics}}
    columns = pd.DataFrame({"column": list(glossary), "what it holds": list(glossary.values())})
    facts = pd.DataFrame([{"fact": key, "value": _fact(value)} for key, value in run.environment.items()])
    spending = Spending.of(run.folder)
    stages = pd.DataFrame([{"stage": name, "seconds": text.number(took)} for name, took in spending.stages.items()])
    return [
        _states(run),
        kernels(run.cases),
        Section("cases", "All cases", _method(run), table=_listing(run.cases)),
        Section("spending", "What did the wall time go into?", spending.sentence, table=stages),
        Section("environment", "Where was this measured?", "As recorded beside the records.", table=facts),
        Section("glossary", "What do the columns hold?", "Columns of analysis.load; SI units.", table=columns),
    ]


def _states(run: Run) -> Section:
    cases, cores = run.cases, run.environment.get("cores")
    states = ", ".join(f"{count} {state}" for state, count in cases["state"].value_counts().items())
    unsettled = int((cases["seconds"].notna() & ~cases["settled"].astype(bool)).sum())
    sentence = f"{len(cases)} cases: {states}. {unsettled} times are unsettled ({_unsettled(run)})."
    if disturbed := int(cases["disturbed"].sum()):
        sentence += f" {disturbed} passes of a case were disturbed in every take and are not used."
    if exposed := int((cases["exposed"] > 0).sum()):
        sentence += f" In {exposed} cases some samples may hold launch latency."
    slowed = pd.Series([isinstance(names, list) and bool(names) for names in cases["throttled"]], dtype=bool)
    if throttled := int(slowed.sum()):
        sentence += f" {throttled} cases ran while the GPU was throttled."
    if cases["load"].notna().any():
        sentence += (
            f" Load while measuring: {cases['load'].median():.1f} in the median, {cases['load'].max():.1f} at most,"
            f" on {cores} cores; above the number of cores, others were running."
        )
    shown = cases[(cases["state"] != "ok") | slowed.to_numpy() | (cases["exposed"] > 0)]
    table = shown[["id", "state", "reason"]].fillna("-").reset_index(drop=True)
    return Section("states", "How did the cases end?", sentence, table=table if len(table) else None)


def _unsettled(run: Run) -> str:
    precision = run.effort.get("precision")
    wide = f", or an interval of more than ±{precision:.0%}" if precision else ""
    return f"fewer than {SETTLED_PASSES} passes{wide}"


def _method(run: Run) -> str:
    cache = {"cold": " Each sample started with a flushed L2.", "warm": " Samples found warm caches."}
    return (
        f"A time is the median of the passes' medians, each pass a fresh process; intervals are {CONFIDENCE:.0%} "
        f"bootstrap intervals over passes, then samples ({RESAMPLES} resamples). Ratios of two cases are taken pass by "
        "pass, with the exact interval of their median. Each case was checked against float64 before its first time "
        f"was taken.{cache.get(run.plan.get('cache', ''), '')} 1 MAC = 2 FLOPs."
    )


def _listing(cases: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "case": row["id"],
            "state": row["state"],
            "passes": row["passes"],
            "time": text.seconds(row["seconds"], row["low"], row["high"])
            + ("" if row["settled"] or pd.isna(row["seconds"]) else " unsettled"),
            "images/s": text.number(row["images_per_second"]),
            "MACs": text.quantity(row["macs"], "MAC"),
            "rate": text.quantity(row["macs_per_second"], "MAC/s"),
            "of the roofline": text.share(row["roofline_share"]),
            "peak": text.quantity(row["peak_bytes"], "B"),
            "peak on paper": text.quantity(row["closed_peak_bytes"], "B"),
            "compiling": text.quantity(row["compile_seconds"], "s"),
            "energy": text.quantity(row["energy_joules"], "J"),
            "attention by": ", ".join(row["attended"]) if isinstance(row["attended"], list) else "-",
            "ran": ", ".join(row["ran"][:2]) if isinstance(row["ran"], list) else "-",
        }
        for _, row in cases.iterrows()
    ]
    return pd.DataFrame(rows)


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return "-" if value is None else str(value)
