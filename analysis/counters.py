"""counters.json of a run, as `python -m benchmarks.counters` wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from vitbench.refusal import Refusal

FILE, SCHEMA = "counters.json", 1
OWN = "vitbench count"  # the exact count, which the others are compared with
AGAIN = "write it again: python -m benchmarks.counters"


@dataclass(frozen=True)
class Counted:
    """One counter on one model. percent: error of its MACs; None where it gave no number, and then reason says why.

    why: the largest part of the error, in words. changed: variations of the program that change its answer though they
    change no product. seconds, peak_bytes: of the count; None if not known.
    """

    counter: str
    model: str
    percent: float | None
    reason: str | None
    why: str | None
    changed: tuple[str, ...]
    seconds: float | None
    peak_bytes: int | None


@dataclass(frozen=True)
class Counters:
    """counts: of every counter on every model. exact: MACs by model."""

    counts: list[Counted]
    exact: dict[str, int]
    processor: str
    versions: dict[str, str]

    def of(self, counter: str) -> list[Counted]:
        return [one for one in self.counts if one.counter == counter]

    def names(self) -> list[str]:
        """Counters, those that are least wrong first: by their mean error, then by what they could not count."""
        return sorted(dict.fromkeys(one.counter for one in self.counts), key=self._wrongness)

    def _wrongness(self, counter: str) -> tuple[float, int]:
        errors = [abs(one.percent) for one in self.of(counter) if one.percent is not None]
        return (fmean(errors) if errors else float("inf"), sum(one.percent is None for one in self.of(counter)))


def read(path: Path) -> Counters:
    """Raises Refusal for what is not such a file."""
    try:
        content = json.loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            raise Refusal(f"{path} has schema {content['schema']}; expected {SCHEMA}: {AGAIN}")
        counts = [_counted(audit["source"], row) for audit in content["audits"] for row in audit["rows"]]
        exact = {audit["source"]: int(audit["exact"]) for audit in content["audits"]}
        return Counters(counts, exact, str(content["environment"]["cpu"]), dict(content["versions"]))
    except Refusal:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(f"{path} is damaged; {AGAIN}") from None


def _counted(model: str, row: dict) -> Counted:  # type: ignore[type-arg]
    place = {"meta": "meta tensors", "device": "CPU tensors"}[row["place"]]
    return Counted(
        counter=OWN if row["counter"] == "exact" else f"{row['counter']}, {place}",
        model=model,
        percent=None if row["percent"] is None else float(row["percent"]),
        reason=row["reason"],
        why=row["reasons"][0]["words"] if row["reasons"] else None,
        changed=tuple(one["name"] for one in row["variations"] if one["changed"]),
        seconds=row["seconds"],
        peak_bytes=row["peak_bytes"],
    )
