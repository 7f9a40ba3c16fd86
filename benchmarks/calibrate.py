"""python -m benchmarks.calibrate FOLDER: are identical cases called the same, and is a planted slowdown found?

Runs `python -m benchmarks`, in a copy of the project that has one backend more, over pairs of identical cases and over
pairs of which one really takes a known share longer: after attending it waits for that share of the time that it took.
Writes pairs.csv (a line a pair: ratio, interval, verdict) and summary.json into the folder. The verdicts are those of
`make compare` between two backends; the noise floor comes from the calibration sweep, not from the pairs judged.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.load import Run, load
from analysis.noise import Measure, quieter
from analysis.study import WORK, Row, of_sweep
from analysis.verdict import MARGIN, verdict
from vitbench.run import ROOT

SLOWDOWN = 0.05
PAIRS = 10  # of each of the 20 identical cases
PLANTED = 5  # of each of the 10 cases with a slowdown

BACKEND = f'''
"""scaled_dot_product_attention that takes {SLOWDOWN:.0%} longer than it must."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from vitbench.backend import backends
from vitbench.backends.sdpa import Sdpa


class Slowed(Sdpa):
    name = "sdpa.slowed"
    description = "slowed on purpose"

    def attend(self, *tensors: Any, **more: Any) -> Any:
        start = perf_counter()
        result = super().attend(*tensors, **more)
        end = perf_counter() + {SLOWDOWN} * (perf_counter() - start)
        while perf_counter() < end:
            pass
        return result


backends.add(Slowed())
'''

SWEEPS = {
    "identical": f"""
question = "Are identical cases called the same?"

[common]
profiles = ["quick"]
copy = {list(range(2 * PAIRS))}
operator = "global"
dim = 384
heads = 6
batch = 1

[[grid]]
height = [14, 16, 20, 24]
width = 14
backend = ["naive", "sdpa"]
scope = ["core", "layer"]

[[grid]]
operator = ["window7", "window7-shift3"]
height = 28
width = 28
dim = 96
heads = 3
backend = ["naive", "sdpa.fold"]
""",
    "planted": f"""
question = "Is a planted slowdown found?"

[[grid]]
profiles = ["quick"]
copy = {list(range(PLANTED))}
operator = "global"
height = [14, 15, 16, 17, 18, 20, 22, 24, 26, 28]
width = 20
dim = 384
heads = 6
batch = 1
scope = "core"
backend = ["sdpa", "sdpa.slowed"]
""",
}


def measure(folder: Path, passes: int) -> Run:
    """The run, made in a copy of the project."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "project"
        for name in ("vitbench", "analysis", "benchmarks"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        (copy / "vitbench" / "backends" / "slowed.py").write_text(BACKEND)
        for name, text in SWEEPS.items():
            (copy / "benchmarks" / "sweeps" / f"{name}.toml").write_text(text)
        command = [sys.executable, "-m", "benchmarks", "--device", "cpu", "--passes", str(passes), "--max-passes"]
        command += [str(passes + 2), "--precision", "1", "--budget", "3600", "--run", str(folder.resolve() / "run")]
        subprocess.run([*command, *(word for name in SWEEPS for word in ("--sweep", name))], cwd=copy, check=True)
    return load(folder / "run")


def pairs(cases: pd.DataFrame, first: pd.Series[bool], second: pd.Series[bool]) -> Iterator[tuple[Row, Row]]:
    """Rows of the same work, from the first and the second selection, in the order of their copies."""
    by = [*WORK, "device"]
    groups = [dict(iter(cases[side].sort_values("copy").groupby(by, sort=False))) for side in (first, second)]
    for work, ones in groups[0].items():
        others = groups[1][work]
        for (_, one), (_, other) in zip(ones.iterrows(), others.iterrows(), strict=True):
            yield one, other


def judged(cases: pd.DataFrame) -> tuple[list[dict[str, Any]], Measure, float | None]:
    """A line for each pair, the way they were compared, and the noise floor."""
    how, floor = quieter(of_sweep(cases, "calibration"))
    lines = []
    for kind, found in (("identical", _identical(cases)), ("planted", _planted(cases))):
        for one, other in found:
            interval = how(one, other)
            ratio, low, high = interval
            word = verdict(interval, MARGIN, floor).word
            lines.append({"kind": kind, "case": one["id"], "ratio": ratio, "low": low, "high": high, "verdict": word})
    return lines, how, floor


def _identical(cases: pd.DataFrame) -> Iterator[tuple[Row, Row]]:
    own = of_sweep(cases, "identical")
    for backend in own["backend"].unique():
        chosen = own[own["backend"] == backend]
        yield from pairs(chosen, chosen["copy"] % 2 == 0, chosen["copy"] % 2 == 1)


def _planted(cases: pd.DataFrame) -> Iterator[tuple[Row, Row]]:
    own = of_sweep(cases, "planted")
    yield from pairs(own, own["backend"] == "sdpa", own["backend"] == "sdpa.slowed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passes", type=int, default=6)
    options = parser.parse_args()
    run = measure(options.folder, options.passes)
    lines, how, floor = judged(run.cases)
    table = pd.DataFrame(lines)
    table.to_csv(options.folder / "pairs.csv", index=False, float_format="%.5f")
    summary = {
        "script": "python -m benchmarks.calibrate",
        "passes": options.passes,
        "margin": MARGIN,
        "noise_floor": floor,
        "divided_by_canary": how.adjusted,
        "slowdown": SLOWDOWN,
        **{
            kind: {
                "pairs": len(group),
                "median_ratio": float(group["ratio"].median()),
                "verdicts": dict(Counter(group["verdict"])),
                "interval_on_one_side_of_1": int(((group["low"] > 1) | (group["high"] < 1)).sum()),
            }
            for kind, group in table.groupby("kind")
        },
        "environment": dict(run.environment),
    }
    (options.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps({key: value for key, value in summary.items() if key != "environment"}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
