"""python -m benchmarks.counters: every counter on models of many kinds: its error, and the time and memory it takes.

Audits each model (`vitbench audit`; a process of its own for every counter) and writes counters.json into the folder
of a run, from which `make report` takes it. audits: as `vitbench audit --json` gives them. versions: of what counted.
Times and memory are of one count each, NOT repeated and with other counters at work beside: orders of magnitude.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from vitbench.audits.rows import audit
from vitbench.folder import newest, read_asked, write_whole
from vitbench.measure.environment import environment
from vitbench.refusal import Refusal, exit_code
from vitbench.source import LIBRARIES

FILE, SCHEMA = "counters.json", 1
SOURCES = (
    "timm:vit_base_patch16_224",
    "torchvision:vit_b_16",
    "hf:ViTModel",
    "timm:eva02_tiny_patch14_224",
    "timm:cait_xxs24_224",
    "timm:xcit_tiny_12_p16_224",
    "timm:swin_tiny_patch4_window7_224",
    "torchvision:swin_t",
    "timm:swinv2_tiny_window8_256",
    "timm:hiera_tiny_224",
    "timm:mvitv2_tiny",
    "timm:maxvit_tiny_tf_224",
    "timm:coatnet_0_rw_224",
)
PACKAGES = ("torch", "timm", "torchvision", "transformers", "fvcore", "ptflops", "thop", "calflops", "torchinfo")
PACKAGES += ("deepspeed",)


def measure(sources: list[str], console: Console) -> dict[str, Any]:
    """What the file holds."""
    started, audits = time.perf_counter(), []
    for n, source in enumerate(sources, 1):
        console.print(f"{n} of {len(sources)}: {source}")
        audits.append(audit(source, said=lambda line: console.print(f"    {line}", highlight=False)))
    return {
        "schema": SCHEMA,
        "script": "python -m benchmarks.counters",
        "environment": environment("cpu"),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "wall_seconds": round(time.perf_counter() - started, 3),
        "audits": audits,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main(arguments: list[str] | None = None) -> int:
    """0: written. 2: refused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counters", description=__doc__)
    parser.add_argument("--run", type=Path, help="folder of the run to write into (default: the newest)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where runs lie")
    parser.add_argument("--source", action="append", help="audit this model instead of the list; may be repeated")
    parser.add_argument("--json", action="store_true", help="print what was written")
    options = parser.parse_args(arguments)
    return exit_code(lambda: _measure(options))


def _measure(options: argparse.Namespace) -> int:
    folder = options.run or newest(options.results)
    if folder is None:
        raise Refusal(f"no run under {options.results}; expected one: make bench, or name a run's folder with --run")
    read_asked(folder)  # refuses now what is no run's folder, not after the audits
    sources = options.source or [one for one in SOURCES if find_spec(LIBRARIES[one.partition(":")[0]].package)]
    if not sources:
        raise Refusal(
            f"none of {', '.join(LIBRARIES.values())} is installed; expected one: pip install timm torchvision"
        )
    content = measure(sources, Console(stderr=True))
    write_whole(folder / FILE, content)
    if options.json:
        print(json.dumps(content, indent=1))
    else:
        print(f"{folder / FILE}, {content['wall_seconds']:.0f} s; python -m analysis report {folder} tells of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
