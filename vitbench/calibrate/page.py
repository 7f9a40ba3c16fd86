"""The subcommand `vitbench calibrate`, and its page for a terminal."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from math import exp
from typing import Any

from rich.console import Console
from rich.table import Table

from vitbench.calibrate.calibration import calibrate
from vitbench.calibrate.document import FILE, Calibration

TOLD = 50  # cases between two lines of progress


def calibrate_command(options: argparse.Namespace) -> int:
    found = calibrate(options.run, _told)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        show(found, Console(highlight=False))
        print(f"\nwritten to {options.run / FILE}")
    return 0


def show(found: Calibration, console: Console) -> None:
    """Constants, what they earned on programs that they were not fitted to, and the error of each family."""
    machine, halves, sweeps = found["environment"], found["halves"], found["sweeps"]
    left = ", ".join(f"{count} {reason}" for reason, count in found["left_out"].items())
    console.print(f"{machine['cpu']}, {machine['threads']} threads, {found['dtype']}", style="bold", markup=False)
    console.print(f"{found['cases']} cases, {found['programs']} different programs; left out: {left or 'none'}\n")
    console.print(_constants(found))
    low, high = (found["log_error_quantiles"][share] for share in ("0.05", "0.95"))
    console.print(f"\neach half of the programs from the other, {halves['partings']} times: {_errors(halves)}")
    console.print(f"each case from those that share no sweep with it: {_errors(sweeps)}")
    console.print(f"a time is {_factor(low)} to {_factor(high)} times the predicted one, in 9 of 10 of these\n")
    console.print(_families(found))


def _constants(found: Calibration) -> Table:
    table = _table("constant", "value", "plausible", "what")
    for one in found["constants"]:
        end = " (at an end)" if one["at_an_end"] else ""
        plausible = f"{one['low']:.0e} to {one['high']:.0e}{end}"
        table.add_row(one["name"], f"{one['value']:.3g} {one['unit']}", plausible, one["meaning"])
    return table


def _families(found: Calibration) -> Table:
    table = _table("by", "", "cases", "median error", "90th percentile")
    for one in found["halves"]["by"]:
        table.add_row(one["by"], one["name"], str(one["cases"]), _share(one["median"]), _share(one["p90"]))
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    for n, name in enumerate(names):
        table.add_column(name, no_wrap=n < len(names) - 1)
    return table


def _errors(found: Mapping[str, Any]) -> str:
    return f"median error {_share(found['median'])}, 90th percentile {_share(found['p90'])}"


def _share(error: float | None) -> str:
    return "-" if error is None else f"{error:.1%}"


def _factor(log_error: float) -> str:
    return f"{exp(log_error):.2f}"


def _told(done: int, cases: int) -> None:
    if done % TOLD == 0:
        print(f"vitbench: tracing case {done + 1} of {cases}", file=sys.stderr)
