"""The subcommand `vitbench scale`."""

from __future__ import annotations

import argparse
import csv
import json
import sys

from vitbench.scale.document import as_json, rows
from vitbench.scale.growth import parse_range, scale


def command(options: argparse.Namespace) -> int:
    """Prints a page, or JSON, or CSV, and draws the figure that was asked for."""
    asked = parse_range(options.image) if options.image else None
    found = scale(options.source, asked, options.batch, _told)
    if options.figure:
        from vitbench.scale import figure

        figure.write(found, options.figure)
    if options.json:
        print(json.dumps(as_json(found), indent=1))
    elif options.csv:
        table = rows(found)
        writer = csv.DictWriter(sys.stdout, table[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    else:
        from rich.console import Console

        from vitbench.scale import page

        page.show(found, Console(highlight=False))
    return 0


def _told(image: int) -> None:
    print(f"vitbench: counting at {image} pixels", file=sys.stderr)
