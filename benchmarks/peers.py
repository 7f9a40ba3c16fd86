"""python -m benchmarks.peers: the same calls timed by this harness, torch.utils.benchmark and plain pytest-benchmark.

Each in turn, in shuffled order, in the same fresh processes; printed as JSON with --json. A tool's figure for a case is
the median of its processes' medians, its interval that of vitbench.interval. agrees: the ratio to this harness, process
by process, may be 1. to_the_same: how many times as long it takes to reach the interval that this harness has, if
intervals shrink with the root of the number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from torch.utils.benchmark import Timer

from benchmarks.options import SECONDS
from vitbench.case import Case
from vitbench.interval import estimate, half_width, ratio
from vitbench.measure.clock import timer
from vitbench.measure.sampling import sample
from vitbench.operator import parse_operator
from vitbench.process import harness
from vitbench.program import build
from vitbench.run import ROOT
from vitbench.shape import Shape

GLOBAL, WINDOW = parse_operator("global"), parse_operator("window7-shift3")
VIT = {side: Shape(1, side, side, 768, 12, prefix=1) for side in (14, 28)}
CASES = [
    *(Case(GLOBAL, shape, backend, scope=scope) for shape in VIT.values() for backend in ("naive", "sdpa")
      for scope in ("core", "layer")),
    *(Case(WINDOW, Shape(1, 56, 56, 96, 3), backend) for backend in ("naive", "sdpa.fold")),
]  # fmt: skip
SEED, OUT = "VITBENCH_PEERS_SEED", "VITBENCH_PEERS_OUT"  # of the process at hand

Tool = Callable[[Callable[[], Any], Any], float]  # a call and the benchmark fixture -> median seconds


def by_vitbench(call: Callable[[], Any], benchmark: Any) -> float:
    return median(sample(call, "cpu", "warm", SECONDS["quick"], timer("cpu"), benchmark).seconds)


def by_torch(call: Callable[[], Any], benchmark: Any) -> float:
    own = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return float(own.adaptive_autorange().median)


def by_pytest(call: Callable[[], Any], benchmark: Any) -> float:
    benchmark(call)
    return float(benchmark.stats.stats.median)


TOOLS: dict[str, Tool] = {"vitbench": by_vitbench, "torch": by_torch, "pytest-benchmark": by_pytest}


def shuffled(seed: int) -> list[tuple[str, str]]:
    """Case ids in random order, each with every tool in random order."""
    draw, order = random.Random(seed), []
    for case in draw.sample(CASES, len(CASES)):
        order += [(case.id, tool) for tool in draw.sample(list(TOOLS), len(TOOLS))]
    return order


@pytest.mark.benchmark(timer=time.perf_counter, disable_gc=True)
@pytest.mark.parametrize(("id_", "tool"), shuffled(int(os.environ.get(SEED, "0"))))
@pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")
def test_peer(id_: str, tool: str, benchmark: Any) -> None:
    call = build(next(case for case in CASES if case.id == id_)).runner()
    call()
    start = time.perf_counter()
    seconds = TOOLS[tool](call, benchmark)
    line = {"case": id_, "tool": tool, "seconds": seconds, "wall": time.perf_counter() - start}
    with Path(os.environ.get(OUT, os.devnull)).open("a") as file:
        file.write(json.dumps({**line, "process": int(os.environ.get(SEED, "0"))}) + "\n")


def measure(processes: int) -> list[dict[str, Any]]:
    """A line for each case, tool and process."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "lines.jsonl"
        for process in range(processes):
            own = harness(ROOT, "benchmarks/peers.py", **{SEED: str(process), OUT: str(out)})
            subprocess.run(**own, check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in out.read_text().splitlines()]


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each case and tool."""
    seconds: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    wall: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        key = line["case"], line["tool"]
        seconds[key][line["process"]] = line["seconds"]
        wall[key] += line["wall"]
    rows = []
    for (case, tool), taken in seconds.items():
        own = seconds[case, "vitbench"]
        interval, against = estimate([[s] for s in taken.values()]), ratio(taken, own)
        width, own_width = half_width(interval), half_width(estimate([[s] for s in own.values()]))
        rows.append(
            {
                "case": case,
                "tool": tool,
                "seconds": interval,
                "over_vitbench": against,
                "agrees": against[1] <= 1 <= against[2],
                "wall": wall[case, tool],
                "to_the_same": wall[case, tool] / wall[case, "vitbench"] * (width / own_width) ** 2,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.processes < 2:
        parser.error(f"--processes {options.processes} gives no interval; expected at least 2")
    rows = summary(measure(options.processes))
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    for tool in TOOLS:
        own = [row for row in rows if row["tool"] == tool]
        print(
            f"{tool}: over vitbench {median(row['over_vitbench'][0] for row in own):.3f} in the median of {len(own)} "
            f"cases, agrees in {sum(row['agrees'] for row in own)}; wall time {sum(row['wall'] for row in own):.1f} s; "
            f"time to the same interval {median(row['to_the_same'] for row in own):.2f} times in the median"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
