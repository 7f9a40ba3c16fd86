"""A page of sections: Markdown with figures beside it, and one self-contained HTML file with the same."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A question and what is said to it: sentence, figure as PNG, table; the latter two may be absent."""

    name: str
    title: str
    sentence: str
    png: bytes | None = None
    table: pd.DataFrame | None = None


def png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def write_page(folder: Path, title: str, sections: list[Section]) -> None:
    """Write report.html, and report.md with its figures in report/, into the folder."""
    beside = folder / "report"
    beside.mkdir(parents=True, exist_ok=True)
    for section in sections:
        if section.png:
            (beside / f"{section.name}.png").write_bytes(section.png)
    (beside / "report.md").write_text(_markdown(title, sections))
    (folder / "report.html").write_text(_html(title, sections))


def _markdown(title: str, sections: list[Section]) -> str:
    parts = [f"# {title}"]
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


def _html(title: str, sections: list[Section]) -> str:
    links = "".join(f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>' for section in sections)
    body = "".join(map(_html_section, sections))
    title = html.escape(title)
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
