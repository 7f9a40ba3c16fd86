"""The report of a run: Markdown with figures beside it, and one self-contained HTML file with the same."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO

import pandas as pd

from analysis import text
from analysis.interval import CONFIDENCE, RESAMPLES, SETTLED_PASSES
from analysis.load import COLUMNS, Run
from analysis.study import Answer, studies


@dataclass(frozen=True)
class Section:
    """A question and what is said to it: sentence, figure as PNG, table; the latter two may be absent."""

    name: str
    title: str
    sentence: str
    png: bytes | None = None
    table: pd.DataFrame | None = None


def write_report(run: Run) -> list[Section]:
    """Write report/report.md, its figures, and report.html into the run's folder; returns the sections."""
    sections = [*_answers(run), *_appendix(run)]
    folder = run.folder / "report"
    folder.mkdir(exist_ok=True)
    for section in sections:
        if section.png:
            (folder / f"{section.name}.png").write_bytes(section.png)
    (folder / "report.md").write_text(_markdown(run, sections))
    (run.folder / "report.html").write_text(_html(run, sections))
    return sections


def _answers(run: Run) -> list[Section]:
    sections = []
    for study in sorted(studies, key=lambda study: (study.place, study.name)):
        answer = study.answer(run.cases)
        if answer is None:
            sections.append(Section(study.name, study.question, "Not answered: this run holds no cases for it."))
        else:
            sections.append(Section(study.name, study.question, answer.sentence, _png(answer), answer.table))
    return sections


def _appendix(run: Run) -> list[Section]:
    cases = run.cases
    ended = cases[cases["state"] != "ok"]
    states = ", ".join(f"{count} {state}" for state, count in cases["state"].value_counts().items())
    unsettled = int((cases["seconds"].notna() & ~cases["settled"].astype(bool)).sum())
    sentence = f"{len(cases)} cases: {states}. {unsettled} times are unsettled (fewer than {SETTLED_PASSES} passes)."
    if cases["load"].notna().any():
        cores = run.environment.get("cores")
        sentence += (
            f" Load while measuring: {cases['load'].median():.1f} in the median, {cases['load'].max():.1f} at most,"
        )
        sentence += (
            f" on {cores} cores; above the number of cores, others were running and times are not to be trusted."
        )
    glossary = pd.DataFrame({"column": list(COLUMNS), "what it holds": list(COLUMNS.values())})
    facts = pd.DataFrame([{"fact": key, "value": _fact(value)} for key, value in run.environment.items()])
    method = (
        f"A time is the median of the passes' medians, each pass a fresh process; intervals are {CONFIDENCE:.0%} "
        f"bootstrap intervals over passes, then samples ({RESAMPLES} resamples). "
        "Ratios of two cases are taken pass by pass, their intervals over passes alone. "
        "Each case was checked against float64 before its first time was taken. 1 MAC = 2 FLOPs."
    )
    why = ended[["id", "state", "reason"]].reset_index(drop=True)
    return [
        Section("states", "How did the cases end?", sentence, table=why if len(why) else None),
        Section("cases", "All cases", method, table=_listing(cases)),
        Section("environment", "Where was this measured?", "As recorded beside the records.", table=facts),
        Section("glossary", "What do the columns hold?", "Columns of analysis.load; SI units.", table=glossary),
    ]


def _listing(cases: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "case": row["id"],
            "time": text.seconds(row["seconds"], row["low"], row["high"])
            + ("" if row["settled"] or pd.isna(row["seconds"]) else " unsettled"),
            "images/s": text.number(row["images_per_second"]),
            "MACs": text.quantity(row["macs"], "MAC"),
            "rate": text.quantity(row["macs_per_second"], "MAC/s"),
            "peak": text.quantity(row["peak_bytes"], "B"),
            "peak on paper": text.quantity(row["closed_peak_bytes"], "B"),
            "ran": ", ".join((row["ran"] or [])[:2]) if isinstance(row["ran"], list) else "-",
        }
        for _, row in cases.iterrows()
    ]
    return pd.DataFrame(rows)


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return "-" if value is None else str(value)


def _png(answer: Answer) -> bytes:
    buffer = BytesIO()
    answer.figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _title(run: Run) -> str:
    return f"Attention on {run.environment.get('device_name', 'an unnamed device')}: {run.plan['profile']} run"


def _markdown(run: Run, sections: list[Section]) -> str:
    parts = [f"# {_title(run)}"]
    for section in sections:
        parts += [f"## {section.title}", section.sentence]
        if section.png:
            parts.append(f"![{section.title}]({section.name}.png)")
        if section.table is not None:
            parts.append(_pipes(section.table))
    return "\n\n".join(parts) + "\n"


def _pipes(table: pd.DataFrame) -> str:
    rows: list[Iterable[object]] = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)


def _html(run: Run, sections: list[Section]) -> str:
    links = "".join(f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>' for section in sections)
    body = "".join(map(_html_section, sections))
    title = html.escape(_title(run))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><nav><ol>{links}</ol></nav>{body}</html>\n"
    )


def _html_section(section: Section) -> str:
    parts = [
        f'<section id="{section.name}"><h2>{html.escape(section.title)}</h2><p>{html.escape(section.sentence)}</p>'
    ]
    if section.png:
        image = base64.b64encode(section.png).decode()
        parts.append(f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{image}">')
    if section.table is not None:
        parts.append(f"<div>{section.table.to_html(index=False, border=0)}</div>")
    return "".join([*parts, "</section>"])


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem } p { font-size: 1.05rem; max-width: 60rem }
img { max-width: 100% } div { overflow-x: auto; max-height: 40rem }
table { border-collapse: collapse; font-size: .82rem } 
th { position: sticky; top: 0; background: #fff; text-align: left }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #ddd; vertical-align: top }
#cases td { white-space: nowrap }
nav { columns: 2; font-size: .9rem }
"""
