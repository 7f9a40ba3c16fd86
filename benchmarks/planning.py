"""python -m benchmarks.planning: how long `vitbench plan` takes over 10,000 configurations and more. [--json]

Whole processes, one after another, each several times over: without a bound of time, so that most of what there is
fits; at one image and at the best batch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from vitbench.refusal import exit_code

ROUNDS = 5
QUESTIONS = {
    "one image, to 1024 pixels": (),
    "one image, to 2400 pixels": ("--image-max", "2400"),
    "best batch, to 1024 pixels": ("--throughput",),
}


def ask(*words: str) -> dict[str, Any]:
    """seconds of the process, and how many configurations it chose among."""
    command = [sys.executable, "-m", "vitbench", "plan", "--device", "h100", *words]
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    told = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    return {"seconds": seconds, "configurations": json.loads(told)["configurations"]}


def answers() -> list[dict[str, Any]]:
    found = []
    for name, words in QUESTIONS.items():
        rounds = [ask(*words) for _ in range(ROUNDS)]
        seconds = sorted(one["seconds"] for one in rounds)
        found.append({"question": name, "configurations": rounds[0]["configurations"], "seconds": seconds})
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description="How long planning takes.")
    parser.add_argument("--json", action="store_true", help="all times")
    options = parser.parse_args(arguments)
    return exit_code(lambda: _main(options.json))


def _main(as_json: bool) -> int:
    found = answers()
    if as_json:
        print(json.dumps(found, indent=1))
        return 0
    table = Table(box=None, pad_edge=False, header_style="cyan")
    for column in ("question", "configurations", "seconds, median", "least", "most"):
        table.add_column(column, justify="left" if column == "question" else "right")
    for one in found:
        seconds = one["seconds"]
        figures = (f"{median(seconds):.2f}", f"{seconds[0]:.2f}", f"{seconds[-1]:.2f}")
        table.add_row(one["question"], f"{one['configurations']:,}", *figures)
    Console(highlight=False).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
