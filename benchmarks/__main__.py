"""python -m benchmarks: run sweeps on this machine, then report. What `make bench` calls."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from analysis.spending import Spending
from vitbench.case import CACHES, DEVICES
from vitbench.evidence import Effort
from vitbench.folder import book, newest, read_asked, read_environments, read_records, wanted
from vitbench.plan import Plan
from vitbench.record import FAULTS
from vitbench.refusal import Refusal, exit_code
from vitbench.run import ROOT, run
from vitbench.sweep import PROFILES, select

SECONDS = {"smoke": 0.03, "quick": 0.12, "full": 0.5}  # of samples, a case and pass
EFFORT = {  # passes at least and at most, and the seconds after which none is added
    "smoke": Effort(1, 3),
    "quick": Effort(6, 12, budget=420.0),
    "full": Effort(6, 20),
}
PRECISION = {"cpu": 0.05, "cuda": 0.02}  # half-width of an interval that is narrow enough; smoke takes any
CALIBRATION = "calibration"  # the sweep of identical cases, part of every run


def main(arguments: list[str] | None = None) -> int:
    """0: all went well. 1: a case was wrong, crashed or timed out. 2: refused. 130: stopped by Ctrl-C."""
    options = _options(arguments)
    console = Console(stderr=options.json)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # end as cleanly as on Ctrl-C
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as under nohup
            signal.signal(ending, signal.default_int_handler)
    return exit_code(lambda: _bench(options, console))


def _bench(options: argparse.Namespace, console: Console) -> int:
    if options.device not in (None, *DEVICES):
        raise Refusal(f"unknown device {options.device!r}; known: {', '.join(DEVICES)}")
    if options.dry_run and options.device:
        return _dry_run(_plan(options, options.device), _effort(options, options.device), options.json, console)
    started = time.monotonic()
    here = _environment(options.device)
    plan, effort = _plan(options, here["device"]), _effort(options, here["device"])
    if options.dry_run:
        return _dry_run(plan, effort, options.json, console)
    folder = options.run or _folder(options.results, plan, effort, here)
    doing = f"{_size(plan, effort)} on {here['device_name']} ({here['device']}), into {folder}"
    console.print(doing, soft_wrap=True, markup=False)
    asked = time.monotonic() - started
    try:
        with _Bar(console) as bar:
            run(folder, plan, effort, here, bar)
    except KeyboardInterrupt:
        again = f"python -m benchmarks {_again(options, folder)}"
        console.print(f"Stopped, every record kept. Go on with: {again}", soft_wrap=True, markup=False)
        return 130
    book(folder, "environment", asked)
    return _close(folder, options.json, console)


def _plan(options: argparse.Namespace, device: str) -> Plan:
    asked = select([*options.sweep, CALIBRATION] if options.sweep else [], options.profile, device)
    cache = options.cache or CACHES[device][0]
    if cache not in CACHES[device]:
        raise Refusal(f"--cache {cache!r} cannot be had on {device}; known: {', '.join(CACHES[device])}")
    return Plan(
        profile=options.profile,
        sweeps=tuple(sorted({name for names in asked.values() for name in names})),
        device=device,
        cache=cache,
        seconds=SECONDS[options.profile],
        seed=options.seed,
        cases=tuple(asked),
        asked_by=tuple(tuple(names) for names in asked.values()),
    )


def _effort(options: argparse.Namespace, device: str) -> Effort:
    usual = EFFORT[options.profile]
    least = options.passes or usual.least
    most = options.max_passes or (least if options.passes else usual.most)
    if most < least:
        raise Refusal(f"--max-passes {most} is less than the {least} passes of every case; expected at least {least}")
    precision = options.precision or (None if options.profile == "smoke" else PRECISION[device])
    budget = usual.budget if options.budget is None else options.budget
    return Effort(least, most, precision, budget, options.case_limit)


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
    if as_json:
        states = {state: sum(line["state"] == state for line in lines) for state in {line["state"] for line in lines}}
        print(json.dumps({"run": str(folder), "states": states, "faults": [line["id"] for line in faults]}))
    report, started = [sys.executable, "-m", "analysis", "report", str(folder.resolve())], time.monotonic()
    code = subprocess.run(report, cwd=ROOT, stdout=sys.stderr if as_json else None).returncode
    book(folder, "report", time.monotonic() - started)
    console.print(Spending.of(folder).sentence, markup=False)
    return 1 if faults else code


class _Bar:
    """A progress bar with the time left; called with records there, records wanted, and what is going on."""

    def __init__(self, console: Console) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, TextColumn("{task.description}"), console=console, refresh_per_second=2)
        self.task = self.progress.add_task("starting", total=None)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()

    def __call__(self, there: int, wanted: int, doing: str) -> None:
        self.progress.update(self.task, completed=there, total=wanted, description=doing)


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


def _again(options: argparse.Namespace, folder: Path) -> str:
    words = ["--profile", options.profile, *(word for name in options.sweep for word in ("--sweep", name))]
    for name in ("device", "cache", "passes", "max_passes", "precision", "budget", "case_limit"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return shlex.join([*words, "--seed", str(options.seed), "--run", str(folder)])


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--profile", default="quick", help=f"{', '.join(PROFILES)} (default quick)")
    parser.add_argument("--sweep", action="append", default=[], help="only this sweep; may be repeated")
    parser.add_argument("--device", help="cpu or cuda (default: cuda if torch sees one)")
    parser.add_argument("--cache", help="cold or warm: how samples find the L2 (default: cold on cuda, warm on cpu)")
    parser.add_argument("--run", type=Path, help="folder to begin or go on in (default: a new one under --results)")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where new runs go")
    parser.add_argument("--passes", type=_count, help="fresh processes over every case (default by profile)")
    parser.add_argument("--max-passes", type=_count, help="where the interval is wider than --precision")
    parser.add_argument(
        "--precision",
        type=_positive,
        help="half-width that is narrow enough (default 0.05 on cpu, 0.02 on cuda)",
    )
    parser.add_argument("--budget", type=_positive, help="seconds after which no pass is added (default by profile)")
    parser.add_argument("--case-limit", type=_positive, default=600.0, help="seconds after which a case is given up")
    parser.add_argument("--seed", type=int, default=0, help="of the order of cases")
    parser.add_argument("--dry-run", action="store_true", help="list the cases and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
