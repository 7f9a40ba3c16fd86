"""python -m benchmarks: run sweeps on this machine, then report. What `make bench` calls."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from analysis.spending import Spending
from benchmarks.options import again, effort_of, parse, plan_of
from vitbench.case import DEVICES
from vitbench.evidence import Effort
from vitbench.folder import book, newest, read_asked, read_environments, read_records, wanted
from vitbench.pace import predicted
from vitbench.plan import Plan
from vitbench.record import FAULTS
from vitbench.refusal import Refusal, exit_code
from vitbench.run import ROOT, run


def main(arguments: list[str] | None = None) -> int:
    """0: all went well. 1: a case was wrong, crashed or timed out. 2: refused. 130: stopped by Ctrl-C."""
    options = parse(arguments, __doc__)
    console = Console(stderr=options.json)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # end as cleanly as on Ctrl-C
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as under nohup
            signal.signal(ending, signal.default_int_handler)
    return exit_code(lambda: _bench(options, console))


def _bench(options: argparse.Namespace, console: Console) -> int:
    if options.device not in (None, *DEVICES):
        raise Refusal(f"unknown device {options.device!r}; known: {', '.join(DEVICES)}")
    if options.dry_run and options.device:
        return _dry_run(plan_of(options, options.device), effort_of(options, options.device), options.json, console)
    started = time.monotonic()
    here = _environment(options.device)
    plan, effort = plan_of(options, here["device"]), effort_of(options, here["device"])
    if options.dry_run:
        return _dry_run(plan, effort, options.json, console)
    folder = options.run or _folder(options.results, plan, effort, here)
    doing = f"{_size(plan, effort)} on {here['device_name']} ({here['device']}), into {folder}"
    console.print(doing, soft_wrap=True, markup=False)
    asked = time.monotonic() - started
    try:
        with _Bar(console) as bar:
            run(folder, plan, effort, here, bar, predicted(plan.cases, options.results, here))
    except KeyboardInterrupt:
        words = f"python -m benchmarks {again(options, folder)}"
        console.print(f"Stopped, every record kept. Go on with: {words}", soft_wrap=True, markup=False)
        return 130
    book(folder, "environment", asked)
    return _close(folder, options.json, console)


def _size(plan: Plan, effort: Effort) -> str:
    more = f", up to {effort.most} where they disagree" if effort.most > effort.least else ""
    return f"{len(plan.cases)} cases x {effort.least} passes{more}"


def _environment(device: str | None) -> dict[str, Any]:
    """Of the device, or of torch's choice where none is named; asked in a process of its own."""
    command = [sys.executable, "-m", "vitbench.measure.environment", *([device] if device else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Refusal((done.stderr.strip().splitlines() or ["the environment could not be read"])[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _close(folder: Path, as_json: bool, console: Console) -> int:
    """Report, and say which cases went wrong."""
    lines = list(read_records(folder))
    faults = [line for line in lines if line["state"] in FAULTS]
    for line in faults:
        console.print(
            f"{line['state']}: {line['id']}, pass {line['pass']}: {line['reason']}", style="red", markup=False
        )
    timed = {line["id"] for line in lines if line["state"] == "ok"}
    for lost in sorted({line["id"] for line in lines if line["state"] == "disturbed"} - timed):
        console.print(f"disturbed: {lost}: the machine changed its speed in every take", markup=False)
    if as_json:
        states = {state: sum(line["state"] == state for line in lines) for state in {line["state"] for line in lines}}
        print(json.dumps({"run": str(folder), "states": states, "faults": [line["id"] for line in faults]}))
    report, started = [sys.executable, "-m", "analysis", "report", str(folder.resolve())], time.monotonic()
    code = subprocess.run(report, cwd=ROOT, stdout=sys.stderr if as_json else None).returncode
    book(folder, "report", time.monotonic() - started)
    console.print(Spending.of(folder).sentence, markup=False)
    return 1 if faults else code


class _Left(TimeRemainingColumn):
    """The seconds left that were predicted, or else what the records so far say."""

    def render(self, task: Task) -> Text:
        left = task.fields["left"]
        return (
            super().render(task)
            if left is None
            else Text(f"{timedelta(seconds=int(left))} left", style="progress.remaining")
        )


class _Bar:
    """A progress bar; called with records there, records wanted, what is going on, and the seconds left if known."""

    def __init__(self, console: Console) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _Left())
        self.progress = Progress(*columns, TextColumn("{task.description}"), console=console, refresh_per_second=2)
        self.task = self.progress.add_task("starting", total=None, left=None)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()

    def __call__(self, there: int, wanted: int, doing: str, left: float | None) -> None:
        self.progress.update(self.task, completed=there, total=wanted, description=doing, left=left)


def _folder(results: Path, plan: Plan, effort: Effort, here: dict[str, Any]) -> Path:
    """The newest unfinished run of this very plan in this very environment, or a new folder."""
    name = f"{plan.profile}-{plan.device}"
    last = newest(results, f"{name}-*")
    if last is not None:
        with suppress(Refusal):  # a damaged folder is not gone on with
            same_plan = read_asked(last)["plan"] == plan.to_dict()
            least = replace(effort, precision=None)  # passes that would be added do not make a run unfinished
            if same_plan and list(read_environments(last)) == [here["id"]] and wanted(last, plan, least):
                return last
    return results / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _dry_run(plan: Plan, effort: Effort, as_json: bool, console: Console) -> int:
    if as_json:
        print(json.dumps({**plan.to_dict(), "effort": effort.to_dict()}, indent=1))
        return 0
    table = Table(title=f"{_size(plan, effort)}, nothing is run")
    table.add_column("case", overflow="fold")
    table.add_column("MACs", justify="right", no_wrap=True)
    table.add_column("asked by")
    for case, names in zip(plan.cases, plan.asked_by, strict=True):
        table.add_row(case.id, f"{case.cost().total_macs:,}", ", ".join(names))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
