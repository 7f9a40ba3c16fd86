"""A choice as a page for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from vitbench.choice.choice import Choice
from vitbench.choice.configurations import Rows
from vitbench.choice.document import command_of

MOST = 20  # rows, where not all are asked for
DOMINANCE = (
    "Pareto set: nothing else of a row's family has as many parameters, as large an image and as small a patch for no "
    "more time{memory}; accuracy is not predicted"
)


def show(choice: Choice, console: Console, everything: bool) -> None:
    """What was asked, the rows, and the command that predicts each."""
    rows = choice.rows if everything else choice.largest()[:MOST]
    console.print(_heading(choice), style="bold", markup=False, soft_wrap=True)
    knowledge = choice.target.knowledge
    console.print(f"knowledge: {knowledge.level}; {knowledge.words}", markup=False, soft_wrap=True)
    chosen = "all of them" if everything else f"of each model the largest image, {len(rows)} rows (--all, --json: all)"
    console.print(
        f"{choice.configurations:,} configurations, {choice.fitting:,} fit, {len(choice.rows):,} in the Pareto set; "
        f"{chosen}\n",
        soft_wrap=True,
    )
    table = _table(choice, rows)
    console.width = max(console.width, console.measure(table).maximum)  # no figure is cut
    console.print(table)
    memory = "" if choice.asked.throughput else " and memory"
    console.print(f"\n{DOMINANCE.format(memory=memory)}\n", soft_wrap=True)
    for n, row in enumerate(rows, 1):
        console.print(f"{n:>4}  {command_of(choice, row)}", markup=False, soft_wrap=True)


def _heading(choice: Choice) -> str:
    budget, images = choice.asked.budget, choice.asked.images
    bounds = [f"{1e3 * budget.latency:.4g} ms a call" if budget.latency else ""]
    bounds += [f"{choice.memory / 1e9:.4g} GB" if choice.memory else "memory not known"]
    batch = "the batch of most images/s" if choice.asked.throughput else "one image at a time"
    within = f"within {' and '.join(filter(None, bounds))}"
    return f"{choice.target.title}, {choice.target.dtype}: {within}, images {images[0]} to {images[1]}, {batch}"


def _table(choice: Choice, rows: Rows) -> Table:
    """With batches where they differ."""
    times = ("batch", "images/s") if choice.asked.throughput else ("ms", "GMACs")
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="cyan")
    for name in ("", "model", "patch", "window", "image", "backend", *times, "GB", "Mparam"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("model", "backend") else "right")
    for n, row in enumerate(rows, 1):
        program = choice.programs[row["program"]]
        window = "-" if program.window is None else str(program.window)
        chosen = (str(n), program.variant.name, str(program.patch), window, str(row["image"]), program.backend)
        figures = {
            "batch": str(row["batch"]),
            "images/s": f"{row['batch'] / row['seconds']:,.4g}",
            "ms": f"{1e3 * row['seconds']:,.2f}",
            "GMACs": f"{row['macs'] / 1e9:,.1f}",
        }
        held = (f"{row['bytes'] / 1e9:.2f}", f"{row['parameters'] / 1e6:,.1f}")
        table.add_row(*chosen, *(figures[one] for one in times), *held)
    return table
