"""python -m analysis.validate FILE.csv ...: the time model held against published speeds (`make validate`).

Traces each model of timm's tables once (kept under --cache), fits the constants of cards, tells each family from the
others and each card from the others, and writes validation.json into the folder of a run, from which `make report`
takes it; --fit also writes the constants that `vitbench predict` uses. The tables are those of timm's results folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vitbench.folder import newest, read_asked, write_whole
from vitbench.knowledge import FITTED, earned
from vitbench.refusal import Refusal, exit_code

FILE = "validation.json"
TOLD = 25  # models between two lines of progress


def main(arguments: Sequence[str] | None = None) -> int:
    """0: written. 2: refused."""
    parser = argparse.ArgumentParser(prog="python -m analysis.validate", description=__doc__)
    parser.add_argument(
        "tables", nargs="+", type=Path, metavar="FILE.csv", help="as timm's benchmark names its results"
    )
    parser.add_argument("--run", type=Path, help="folder of the run to write into (default: the newest)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where runs lie")
    parser.add_argument("--cache", type=Path, help="where traces are kept (default: traces in the results folder)")
    parser.add_argument("--fit", action="store_true", help=f"write vitbench/{FITTED}, which predictions use")
    parser.add_argument("--json", action="store_true", help="print what was written")
    options = parser.parse_args(arguments)
    return exit_code(lambda: _validate(options))


def _validate(options: argparse.Namespace) -> int:
    if find_spec("timm") is None:
        raise Refusal("timm is not installed: pip install timm")
    try:
        from vitbench.validation.speeds import read
        from vitbench.validation.validation import validate
    except ModuleNotFoundError as error:
        raise Refusal(f"{error.name} is not installed: pip install {error.name}") from error
    run: Path | None = options.run or newest(options.results)
    if run is None:
        raise Refusal(f"no run under {options.results}; expected one: make bench, or name a run's folder with --run")
    read_asked(run)
    found = validate([read(path) for path in options.tables], options.cache or options.results / "traces", _told)
    write_whole(run / FILE, found)
    if options.fit:
        write_whole(Path(str(files("vitbench") / FITTED)), earned(found))
    print(json.dumps(found, indent=1) if options.json else "\n".join(lines(found)))
    return 0


def lines(found: dict[str, Any]) -> list[str]:
    """The scores: a line for each table, method and what was left out."""
    told = [f"{'table':52} {'method':28} {'left out':9} {'rows':>5} {'median':>8} {'90 %':>8} {'rank':>7}"]
    for one in found["scores"]:
        score = one["score"]
        numbers = "-" if score is None else "{rows:5} {median:8.1%} {p90:8.1%}".format(**score)
        if score and score["rank"] is not None:
            numbers += f" {score['rank']:7.4f}"
        told.append(f"{one['table']:52} {one['method']:28} {one['left_out']:9} {numbers}")
    return told


def _told(done: int, every: int) -> None:
    if done % TOLD == 0 or done == every:
        print(f"traced {done} of {every} models", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
