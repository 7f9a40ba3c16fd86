"""python -m benchmarks.answers: how long it takes to be told a model's MACs, and in how much memory. [--json]

The same question as whole processes, in turn, several times over: `vitbench count`, torch's FlopCounterMode on meta
tensors, fvcore. First ViT-B/16 at 224 pixels, then models of timm at 1024, of which also what comes above the imports:
seconds, and the growth of the process's peak resident memory. `vitbench count` counts inference and training each time,
the others inference alone. Answers are printed beside: fast and wrong is no answer.
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
from rich.progress import track
from rich.table import Table

from vitbench.refusal import exit_code

ROUNDS = 5
LARGE = ("vit_base_patch16_224", "swin_tiny_patch4_window7_224", "xcit_small_12_p16_224")
VITBENCH = "vitbench count"

BEFORE = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
{imports}
peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, held = time.perf_counter(), peak()
{count}
print(json.dumps({{"macs": int(macs), "seconds": time.perf_counter() - start, "bytes": peak() - held}}))
"""
MODEL = "timm.create_model({name!r}, img_size={image}).eval()"
WAYS = {  # imports; the count
    VITBENCH: (
        "import torch, timm; import vitbench.exact.watch; from vitbench.count import count",
        "macs = count('timm:{name}', ({image}, {image})).macs",
    ),
    "FlopCounterMode, meta": (
        "import torch, timm; from torch.utils.flop_counter import FlopCounterMode",
        f"""
with torch.device("meta"):
    model, x = {MODEL}, torch.empty(1, 3, {{image}}, {{image}})
with FlopCounterMode(display=False) as counter, torch.no_grad():
    model(x)
macs = counter.get_total_flops() // 2
""",
    ),
    "fvcore": (
        "import logging, torch, timm; from fvcore.nn import FlopCountAnalysis\nlogging.disable()",
        f"""
model, x = {MODEL}, torch.zeros(1, 3, {{image}}, {{image}})
with torch.no_grad():
    macs = FlopCountAnalysis(model, x).total()
""",
    ),
}


def ask(way: str, name: str, image: int) -> dict[str, Any]:
    """macs; seconds and bytes above the imports; whole: seconds of the process."""
    imports, counted = (part.format(name=name, image=image) for part in WAYS[way])
    return _process([sys.executable, "-c", BEFORE.format(imports=imports, count=counted)])


def ask_built_in() -> dict[str, Any]:
    return _process([sys.executable, "-m", "vitbench", "count", "vit_b_16", "--json"])


def _process(command: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "whole": time.perf_counter() - start}


def measure(rounds: int) -> list[dict[str, Any]]:
    """A row for each question and way: macs, and seconds, bytes, whole of each round; None where not asked for."""
    questions = [(VITBENCH, "vit_b_16", 224), *((way, "vit_base_patch16_224", 224) for way in WAYS if way != VITBENCH)]
    questions += [(way, name, 1024) for name in LARGE for way in WAYS]
    rows: dict[tuple[str, str, int], list[dict[str, Any]]] = {question: [] for question in questions}
    for n in track(range(rounds * len(questions)), "asking", console=Console(stderr=True)):
        way, name, image = question = questions[n % len(questions)]  # in turn, so that what slows one slows all
        rows[question].append(ask_built_in() if name == "vit_b_16" else ask(way, name, image))
    return [
        {
            "way": way,
            "model": name,
            "image": image,
            "macs": taken[0]["macs"],
            **{key: [one[key] for one in taken] if key in taken[0] else None for key in ("whole", "seconds", "bytes")},
        }
        for (way, name, image), taken in rows.items()
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = measure(options.rounds)
    print(json.dumps(rows, indent=1)) if options.json else Console(highlight=False).print(_table(rows))
    return 0


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("model", "image", "asked of", "MACs", "whole process, s", "above imports, s", "above imports, MB")
    for row in rows:
        spread = [_spread(row["whole"], 1), _spread(row["seconds"], 1), _spread(row["bytes"], 1e-6)]
        table.add_row(row["model"], str(row["image"]), row["way"], f"{row['macs']:,}", *spread)
    return table


def _spread(values: list[float] | None, scale: float) -> str:
    """Median (least to most)."""
    if values is None:
        return "-"
    return f"{median(values) * scale:.3g} ({min(values) * scale:.3g} to {max(values) * scale:.3g})"


if __name__ == "__main__":
    sys.exit(exit_code(main))
