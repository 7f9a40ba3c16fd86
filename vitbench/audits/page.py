"""`vitbench audit SOURCE`: counters and their reasons as a table for a terminal, or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vitbench.audits.rows import EXACT, LIMIT, PLACES, audit
from vitbench.source import image_of

Found = dict[str, Any]


def audit_command(options: argparse.Namespace) -> int:
    """source; image: H or HxW, or None; json: print the data of `rows.audit` instead of a table.

    Raises Refusal for what is no image and for a source that cannot be counted.
    """
    console = Console(stderr=True, highlight=False)
    with console.status(f"{options.source}: counters start, each in its own process") as status:
        told = (lambda text: status.update(text)) if console.is_terminal else (lambda text: console.print(text))
        found = audit(options.source, image_of(options.image), limit=LIMIT, said=told)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        show(found, Console(highlight=False))
    return 0


def show(found: Found, console: Console) -> None:
    """A row for each counter: its number, how far off, and why."""
    image = f" at {found['image'][0]}x{found['image'][1]}" if found["image"] else ""
    closed = {None: "", found["exact"]: ", as its closed form"}.get(
        found["closed"], f"; its closed form says {found['closed'] or 0:,}"
    )
    exact = f"{found['exact']:,} MACs ({2 * found['exact']:,} FLOPs){closed}"
    console.print(f"{found['source']}{image}: {exact}", style="bold", markup=False)
    for what in (*(f"not counted: {name}" for name in found["uncounted"]), *found["notes"]):
        console.print(what, markup=False)
    table = Table(show_lines=True, pad_edge=False)
    table.add_column("counter", style="cyan")
    table.add_column("number and convention", max_width=26)
    table.add_column("MACs off", justify="right", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("s, MB", justify="right", no_wrap=True)
    table.add_column("why, in MACs; what changes it")
    for row in found["rows"]:
        table.add_row(*_cells(row))
    console.print(table)


def _cells(row: Found) -> tuple[Text, ...]:
    name = row["counter"] if row["counter"] == EXACT else f"{row['counter']}\non {PLACES[row['place']]}"
    if row["macs"] is None:
        why = Text("\n").join([Text(f"no number: {row['reason']}", "red"), *_changes(row["variations"], row["reason"])])
        return Text(name), Text("-"), Text("-"), Text("-"), Text("-"), why
    took = f"{row['seconds']:.2f}" + ("" if row["peak_bytes"] is None else f"\n{row['peak_bytes'] / 1e6:,.0f}")
    why = Text("\n").join([*_reasons(row), *_changes(row["variations"])])
    number = Text(f"{row['number']:,}\n{row['convention']}")
    return Text(name), number, Text(f"{row['difference']:+,}"), Text(percent(row)), Text(took), why


def percent(row: Found) -> str:
    """How far off, with as many digits as tell it from 0."""
    if row["percent"] is None:
        return "-"
    if not row["difference"]:
        return "0"
    return f"{row['percent']:+.2f}" if abs(row["percent"]) >= 0.01 else f"{row['percent']:+.1g}"


def _reasons(row: Found) -> list[Text]:
    lines = [Text(f"{one['macs']:+,} {one['words']} ({', '.join(one['by'])})") for one in row["reasons"]]
    if row["unexplained"]:
        lines.append(Text(f"{row['unexplained']:+,} unexplained", "red"))
    if row["uncounted"]:
        lines.append(Text(f"it names as not counted: {', '.join(row['uncounted'])}"))
    return lines or [Text("exact")]


def _changes(variations: list[Found], failed: str | None = None) -> list[Text]:
    """What changes the answer, variations with the same answer in one line. failed: why there is none to change."""
    said: dict[str, list[str]] = {}
    for one in variations:
        if one["reason"] and one["reason"] != failed:
            said.setdefault(f"no number: {one['reason']}", []).append(one["name"])
        elif one["macs"] is not None and one["changed"] is not False:
            off = "exact" if not one["difference"] else f"{percent(one)} %"
            rest = f", {one['unexplained']:+,} unexplained" if one["unexplained"] else ""
            said.setdefault(f"{one['number']:,} ({off}{rest})", []).append(one["name"])
    return [Text(f"{', '.join(names)}: {answer}", "yellow") for answer, names in said.items()]
