"""An account as people read it, as CSV, and as JSON: what `vitbench count` prints."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Mapping

from vitbench.count import Account, count
from vitbench.exact.tally import PAIRS
from vitbench.source import image_of


def count_command(options: argparse.Namespace) -> int:
    """The subcommand `vitbench count`."""
    account = count(options.source, image_of(options.image), options.batch, options.mode, options.by)
    if options.json:
        print(json.dumps(account.to_dict(), indent=1))
    elif options.csv:
        print(table(account), end="")
    else:
        print("\n".join(lines(account)))
    return 0


def table(account: Account) -> str:
    """CSV: a row for each term, operator or module, then the total."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow((account.by, "macs", "flops", "share"))
    for name, macs in (*account.parts.items(), ("total", account.macs)):
        rows.writerow((name, macs, 2 * macs, f"{macs / account.macs:.6f}" if account.macs else ""))
    return written.getvalue()


def lines(account: Account) -> list[str]:
    """For people: every figure with its name and unit."""
    parts = account.parts if account.by != "module" else folded(account.parts)
    width = max(map(len, (*parts, "weights x data"))) + 4
    pairs = ", ".join(term for term in account.terms if term in PAIRS) or "none"
    told = [
        _heading(account),
        "",
        f"{'MACs':<{width}}{account.macs:>22,}",
        f"{'FLOPs':<{width}}{2 * account.macs:>22,}   2 a MAC",
        "",
        f"MACs by {account.by}",
        *(_part(f"  {name}", macs, account, width) for name, macs in parts.items()),
        "",
        "MACs by what is multiplied",
        _part("  weights x data", account.weight_macs, account, width),
        _part("  data x data", account.pair_macs, account, width) + f"   {pairs}",
        *(
            [_part("  other", account.other_macs, account, width) + "   weights x weights"]
            if account.other_macs
            else []
        ),
        "",
        f"{'parameters':<{width}}{account.parameters:>22,}" + _trainable(account),
        f"{'score elements':<{width}}{account.score_elements:>22,}",
        f"{'elementwise':<{width}}{account.elementwise:>22,}   output elements of softmax, norms, biases ...; no MACs",
        *(
            f"{'peak bytes':<{width}}{'-' if peak is None else f'{peak:,}':>22}   activations, {mode}"
            for mode, peak in account.peak_bytes.items()
        ),
        f"{'not counted':<{width}}{len(account.uncounted) or 'nothing':>22}",
        *(f"  {name}" for name in account.uncounted),
        *(f"note: {note}" for note in account.notes),
    ]
    return told


def _heading(account: Account) -> str:
    images = "its own inputs"
    if account.image:
        height, width = account.image
        images = f"{account.batch} image{'s' * (account.batch > 1)} of {height}x{width}"
    return f"{account.source}, {images}, {account.mode}: {account.method}"


def _part(name: str, macs: int, account: Account, width: int) -> str:
    share = f"{macs / account.macs:>8.2%}" if account.macs else f"{'-':>8}"
    return f"{name:<{width}}{macs:>22,}{share}"


def _trainable(account: Account) -> str:
    return "" if account.trainable == account.parameters else f"   {account.trainable:,} of them trainable"


def folded(parts: Mapping[str, int]) -> dict[str, int]:
    """Modules that differ in a number of their path alone, as blocks.0.mlp and blocks.1.mlp, together."""
    groups: dict[str, list[tuple[list[int], int]]] = {}
    for path, macs in parts.items():
        pattern = re.sub(r"\d+", "#", path)
        groups.setdefault(pattern, []).append(([int(number) for number in re.findall(r"\d+", path)], macs))
    found = {}
    for pattern, members in groups.items():
        columns = [sorted(set(column)) for column in zip(*(numbers for numbers, _ in members), strict=True)]
        spans = iter([str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in columns])
        name = re.sub("#", lambda _: next(spans), pattern)  # noqa: B023
        name += f" ({len(members)} modules)" if len(members) > 1 else ""
        found[name or "the model itself"] = sum(macs for _, macs in members)
    return found
