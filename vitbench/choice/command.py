"""The subcommand `vitbench plan`."""

from __future__ import annotations

import argparse
import json

from vitbench.choice.budget import Budget, bytes_of, seconds_of
from vitbench.choice.choice import Asked, choose
from vitbench.choice.document import as_json
from vitbench.choice.target import target


def command(options: argparse.Namespace) -> int:
    """Prints a page or JSON, and draws the figure that was asked for."""
    latency = None if options.latency is None else seconds_of(options.latency)
    memory = None if options.memory is None else bytes_of(options.memory)
    families = None if options.family is None else [name.strip() for name in options.family.split(",")]
    images = (options.image_min, options.image_max)
    if options.figure is not None:
        from vitbench.choice import figure

        figure.refuse(options.figure)
    asked = Asked(Budget(latency, memory), images, options.throughput, families)
    found = choose(asked, target(options.device, options.dtype, batches=options.throughput))
    if options.figure is not None:
        figure.write(found, options.figure)
    if options.json:
        print(json.dumps(as_json(found), indent=1))
    else:
        from rich.console import Console

        from vitbench.choice import page

        page.show(found, Console(highlight=False), options.all)
    return 0
