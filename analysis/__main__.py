"""python -m analysis: verify the counts, report on a run, compare two. What `make verify|report|compare` call."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from vitbench.refusal import Refusal, exit_code, positive


def main(arguments: list[str] | None = None) -> int:
    """0: done. 1: a count that nothing explains, or a case that became slower. 2: refused."""
    options = _options(arguments)
    return exit_code(lambda: int(options.command(options)))


def _report(options: argparse.Namespace) -> int:
    from analysis.load import load
    from analysis.report import write_report
    from vitbench.folder import newest

    folder = options.run or newest(options.results)
    if folder is None:
        raise Refusal(f"no run under {options.results}; expected one: make bench")
    run = load(folder)
    table = Table("question", "answer", show_lines=True, title=f"{len(run.cases)} cases, {run.plan['profile']} run")
    for section in write_report(run):
        if section.name not in ("cases", "environment", "glossary"):
            table.add_row(section.title, section.sentence)
    console = Console()
    console.print(table)
    console.print(f"report: {folder / 'report.html'}\n        {folder / 'report' / 'report.md'}", soft_wrap=True)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from analysis.compare import compare_backends, compare_runs
    from analysis.comparison_page import row, sections, sentence, to_dict
    from analysis.load import load
    from analysis.page import write_page

    if options.run:
        run = load(options.run)
        found = compare_backends(run, options.first, options.second, options.margin)
    else:
        run = load(Path(options.second))
        found = compare_runs(load(Path(options.first)), run, options.margin, options.across_machines)
    into = run.folder / f"{found.second}-against-{found.first}"
    write_page(into, f"{found.second} against {found.first}", sections(found))
    if options.json:
        print(json.dumps(to_dict(found), indent=1))
    else:
        table = Table("case", "second over first", "verdict", title=f"{found.second} against {found.first}")
        for line in found.lines:
            told = row(line)
            if line.verdict.word in ("slower", "faster"):
                table.add_row(told["case"], told["second over first"], told["verdict"])
        console = Console()
        console.print(table) if table.row_count else None
        for said in (sentence(found), *found.notes, f"report: {into / 'report.html'}"):
            console.print(said, soft_wrap=True, markup=False, highlight=False)
    for case in found.broken:
        print(f"vitbench: {case}: had a time in {found.first}, failed in {found.second}", file=sys.stderr)
    return 1 if found.count("slower") or found.broken else 0


def _verify(options: argparse.Namespace) -> int:
    from analysis.verify import both_modes, verify
    from vitbench.measure.environment import usable_device
    from vitbench.sweep import select

    device = usable_device(options.device)
    cases = both_modes(select(options.sweep, options.profile, device))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # tracers and uncompiled FlexAttention warn of how they run, not of what they count
        verdicts = list(track(verify(cases), "counting", total=len(cases), console=Console(stderr=True)))
    faults = [verdict for verdict in verdicts if verdict.fault]
    if options.json:
        print(json.dumps([verdict.to_dict() for verdict in verdicts], indent=1))
    else:
        for verdict in verdicts:
            print("\n".join(_lines(verdict.to_dict())))
        print(f"\n{len(verdicts)} cases: {len(verdicts) - len(faults)} explained exactly, {len(faults)} not.")
    for verdict in faults:
        print(f"vitbench: {verdict.case.id}: {verdict.fault}", file=sys.stderr)
    return 1 if faults else 0


def _lines(verdict: dict) -> list[str]:  # type: ignore[type-arg]
    """A case: its closed form, then each counter with what it differs by."""
    lines = [f"{verdict['id']}", f"    closed form    {verdict['closed']:>20,} MACs"]
    for key, count in verdict["counts"].items():
        macs = f"{count['macs']:>20,}" if count["macs"] is not None else f"{'-':>20}"
        lines.append(f"    {key:<14} {macs}" + (f"  {count['reason']}" if count["reason"] else ""))
        lines += [f"    {'':<14} {macs:>20,}  {reason}" for reason, macs in count["differences"].items()]
    return [*lines, *([f"    FAULT: {verdict['fault']}"] if verdict["fault"] else [])]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m analysis", description=__doc__)
    commands = parser.add_subparsers(required=True)
    report = commands.add_parser("report", help="sentences, figures and tables from a run's records")
    report.add_argument("run", nargs="?", type=Path, help="folder of the run (default: the newest)")
    report.add_argument("--results", type=Path, default=Path("results"), help="where runs lie")
    report.set_defaults(command=_report)
    against = commands.add_parser("compare", help="which cases are slower in the second of two runs or backends")
    against.add_argument("first", help="folder of a run; with --run, a backend")
    against.add_argument("second", help="likewise")
    against.add_argument("--run", type=Path, help="compare two backends within this run")
    against.add_argument("--margin", type=positive, help="of equivalence, 0.02 is 2 %% (the default)")
    against.add_argument("--across-machines", action="store_true", help="compare runs of unlike machines all the same")
    against.add_argument("--json", action="store_true")
    against.set_defaults(command=_compare)
    check = commands.add_parser("verify", help="closed form against every counter, over all cases of the sweeps")
    check.add_argument("--profile", default="quick")
    check.add_argument("--sweep", action="append", default=[], help="only this sweep; may be repeated")
    check.add_argument("--device", help="cpu or cuda (default: cuda if torch sees one)")
    check.add_argument("--json", action="store_true")
    check.set_defaults(command=_verify)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
