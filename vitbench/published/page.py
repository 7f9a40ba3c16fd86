"""The audit of a published table as a page and as JSON, and the command that makes it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn
from rich.table import Table as Grid

from vitbench.published.audit import Advance, Audit, audit
from vitbench.published.table import UNITS, read
from vitbench.published.verdicts import Verdict, size

NO_REASON = "no known reason"


def table_command(options: argparse.Namespace) -> int:
    """options: table (a path), json. 0: no row is wrong; 1: some are; 130: Ctrl-C, after what there was is printed."""
    table = read(Path(options.table))
    with _progress(f"counting the models of {table.name}") as advance:
        found = audit(table, advance)
    if options.json:
        print(json.dumps(rows(found), indent=1))
    else:
        show(found, Console(highlight=False, markup=False))
    if found.interrupted:
        return 130
    return int(any(one.verdict == "wrong" for one in found.verdicts))


@contextmanager
def _progress(words: str) -> Iterator[Advance]:
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns()[:3], TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(words, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def rows(found: Audit) -> list[dict[str, Any]]:
    """One a row of the table. published, exact: in `unit`, under the convention. macs: exact, of one image."""
    return [
        {
            "model": one.row.model,
            "source": found.sources[one.row.model],
            "image": one.row.image,
            "published": None if one.row.published is None else float(one.row.published),
            "exact": one.exact,
            "unit": one.row.unit,
            "macs": one.macs,
            "convention": found.convention.name if found.convention else None,
            "verdict": one.verdict,
            "reason": one.reason,
        }
        for one in found.verdicts
    ]


def show(found: Audit, console: Console) -> None:
    """What was found of the table, how often each reason, then the rows that are not right, reason by reason."""
    columns = ", ".join(f"{role}: {column or 'none'}" for role, column in found.table.columns.items())
    console.print(f"{found.table.name}: {len(found.verdicts)} rows; {columns}")
    if found.convention:
        follow = f"{found.agreeing} of {found.counted} counted rows follow it to the printed digit, losses aside"
        console.print(f"convention: {found.convention.name} ({found.convention.line}); {follow}")
    verdicts = Counter(one.verdict for one in found.verdicts)
    console.print(", ".join(f"{verdicts[name]} {name}" for name in ("right", "wrong", "unknown")))
    counts = Counter((one.verdict, _split(one)[0]) for one in found.verdicts if one.verdict != "right")
    kinds = sorted(counts.most_common(), key=lambda kind: kind[0][0] != "wrong")
    for (verdict, kind), times in kinds:
        console.print(f"  {times:5} {verdict}: {kind}")
    for (verdict, kind), _ in kinds:
        console.print(f"\n{verdict}: {kind}", style="bold")
        console.print(_grid([one for one in found.verdicts if (one.verdict, _split(one)[0]) == (verdict, kind)]))


def _split(one: Verdict) -> tuple[str, str]:
    """A reason, and what in it is the row's own."""
    kind, _, own = (one.reason or NO_REASON).partition(": ")
    return kind, own


def _grid(verdicts: Sequence[Verdict]) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for name in ("model", "image", "published", "exact", "difference", ""):
        number = name in ("published", "exact", "difference")
        grid.add_column(name, justify="right" if number else "left", no_wrap=bool(name))
    for one in verdicts:
        grid.add_row(*_cells(one))
    return grid


def _cells(one: Verdict) -> tuple[str, ...]:
    row = one.row
    letter = next((letter.upper() for letter, unit in UNITS.items() if unit == row.unit), "")
    published, exact, difference = (f"{row.published}{letter}" if row.published is not None else "-"), "-", "-"
    if row.published is not None and one.exact is not None:
        digits = max(0, -row.step.adjusted()) + 1
        exact = f"{one.exact:.{digits}f}"
        difference = f"{float(row.published) - one.exact:+.{digits}f}"
    image = size(row.image) if row.image else "own"
    return row.model, image, published, exact, difference, _split(one)[1]
