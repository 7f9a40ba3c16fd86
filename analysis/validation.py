"""validation.json of a run, as `python -m analysis.validate` wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vitbench.refusal import Refusal

FILE, SCHEMA = "validation.json", 1
OURS = "kernel by kernel"
AGAIN = "write it again: make validate TABLES=..."


@dataclass(frozen=True)
class Validation:
    """tables: by name, with card, torch and whether compiled. scores: a row for table, method and what was left out.

    rows: of published times, with `without_family` and `without_card`, the seconds told with these left out (NaN: not
    told).
    """

    tables: dict[str, dict[str, Any]]
    scores: pd.DataFrame
    rows: pd.DataFrame

    def title(self, table: str) -> str:
        """RTX3090, torch 2.4.0, compiled."""
        one = self.tables[table]
        major, rest = str(one["torch"])[:1], str(one["torch"])[1:]
        version = ".".join((major, rest) if major == "1" else (major, *rest))  # 113 is 1.13, 240 is 2.4.0
        return f"{one['card'].upper()}, torch {version}, {'compiled' if one['compiled'] else 'eager'}"


def read(path: Path) -> Validation:
    """Raises Refusal for what is not such a file."""
    try:
        content = json.loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            raise Refusal(f"{path} has schema {content['schema']}; expected {SCHEMA}: {AGAIN}")
        scores = [
            {key: one[key] for key in ("table", "method", "left_out")} | (one["score"] or {})
            for one in content["scores"]
        ]
        rows = [
            {**row, **{f"without_{name}": told for name, told in row.pop("predicted").items()}}
            for row in content["rows"]
        ]
        tables = {one["name"]: one for one in content["tables"]}
        return Validation(tables, pd.DataFrame(scores), pd.DataFrame(rows))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{path} is damaged ({error}); {AGAIN}") from error
