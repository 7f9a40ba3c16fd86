"""What docs/json.md says of a command's JSON."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "json.md").read_text()


def keys(command: str) -> set[str]:
    """First column of the table under the heading of a command."""
    lines = [line.split("|")[1] for line in _section(command).splitlines() if line.startswith("| `")]
    return {key for line in lines for key in re.findall(r"`(\w+)`", line)}


def named(command: str) -> set[str]:
    """Every word in code style under that heading."""
    return set(re.findall(r"`(\w+)`", _section(command)))


def _section(command: str) -> str:
    _, heading, after = TEXT.partition(f"## `{command}`")
    assert heading, f"docs/json.md has no {heading}"
    return after.partition("\n## ")[0]
