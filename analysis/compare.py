"""Two runs, or two backends within a run: which cases became faster or slower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.load import Run
from analysis.noise import Measure, noise_floor, quieter
from analysis.study import WORK, Row
from analysis.verdict import MARGIN, Verdict, verdict
from vitbench.interval import Interval
from vitbench.record import FAULTS
from vitbench.refusal import Refusal

# What makes two machines unlike; versions and source may differ, for that is what one compares.
MACHINE = ("device", "device_name", "device_uuid", "cpu", "cores", "threads", "memory_bytes")
BESIDE = ("id", "commit", "dirty")
BROKEN = (*FAULTS, "out_of_memory")


@dataclass(frozen=True)
class Line:
    """One case on both sides. interval: the second's time over the first's."""

    case: str
    first: Row
    second: Row
    interval: Interval
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """lines: cases that both sides have a time of. apart: the others, and why. floor: the noise floor, None if unknown.

    notes: what a reader must know before believing it, in sentences.
    """

    first: str
    second: str
    lines: list[Line]
    apart: list[dict[str, str]]
    margin: float
    floor: float | None
    notes: list[str]

    def count(self, word: str) -> int:
        return sum(line.verdict.word == word for line in self.lines)

    @property
    def broken(self) -> list[str]:
        """Cases that have a time on the first side, and on the second a failure."""
        return [case["case"] for case in self.apart if case["first"] == "timed" and case["second"] in BROKEN]


def compare_runs(first: Run, second: Run, margin: float | None = None, across_machines: bool = False) -> Comparison:
    """Joined on the ids of cases. Raises Refusal for unlike machines, unless across_machines, and too small a margin.

    Where times divided by the canary say otherwise than the times themselves, the machine's own speed may have changed
    from one run to the other: such a case is inconclusive.
    """
    notes = [*_machines(first, second, across_machines), *_sampling(first, second)]
    plain, adjusted = Measure(paired=False, adjusted=False), Measure(paired=False, adjusted=True)
    floors = [noise_floor(run.cases, plain) for run in (first, second)]
    floor = max((value for value in floors if value is not None), default=None)
    margin = _margin(margin, floor)

    def judge(one: Row, other: Row) -> Line:
        interval = plain(one, other)
        known = one["canary_by_pass"] and other["canary_by_pass"]
        canary = verdict(adjusted(one, other), margin, floor) if known else None
        return Line(one["id"], one, other, interval, _agreed(verdict(interval, margin, floor), canary))

    one, other = (run.cases.set_index("id", drop=False) for run in (first, second))
    return Comparison(*_names(first.folder, second.folder), *_joined(one, other, judge), margin, floor, notes)


def compare_backends(run: Run, first: str, second: str, margin: float | None = None) -> Comparison:
    """Cases that differ in the backend alone, pass by pass. Raises Refusal for a backend that the run does not hold.

    Times are divided by the canary if identical cases of the run then come less far apart.
    """
    known = sorted(set(run.cases["backend"]))
    for name in (first, second):
        if name not in known:
            raise Refusal(f"{run.folder} holds no backend {name!r}; known: {', '.join(known) or 'none'}")
    measure, floor = quieter(run.cases)
    margin = _margin(margin, floor)

    def judge(one: Row, other: Row) -> Line:
        interval = measure(one, other)
        return Line(one["id"], one, other, interval, verdict(interval, margin, floor))

    one, other = (_by_work(run.cases[run.cases["backend"] == name]) for name in (first, second))
    note = "Times are divided by the canary around them, since identical cases then come less far apart."
    return Comparison(first, second, *_joined(one, other, judge), margin, floor, [note] if measure.adjusted else [])


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Of the folders; with their parents where they are called the same."""
    one, other = first.resolve(), second.resolve()
    if one.name != other.name:
        return one.name, other.name
    return f"{one.parent.name}-{one.name}", f"{other.parent.name}-{other.name}"


def _by_work(cases: pd.DataFrame) -> pd.DataFrame:
    """Indexed by all that a case is but its backend."""
    keys = cases[[*WORK, "device", "copy"]].itertuples(index=False)
    return cases.assign(work=[" ".join(map(str, key)) for key in keys]).set_index("work")


def _joined(
    first: pd.DataFrame, second: pd.DataFrame, judge: Callable[[Row, Row], Line]
) -> tuple[list[Line], list[dict[str, str]]]:
    """A line for each key with a time on both sides; the others, and what they are on either side."""
    lines, apart = [], []
    for key in [*first.index, *(key for key in second.index if key not in first.index)]:
        rows = [side.loc[key] if key in side.index else None for side in (first, second)]
        ends = ["not there" if row is None else row["state"] if pd.isna(row["seconds"]) else "timed" for row in rows]
        if ends == ["timed", "timed"]:
            lines.append(judge(rows[0], rows[1]))
        else:
            name = next(row["id"] for row in rows if row is not None)
            apart.append({"case": name, "first": ends[0], "second": ends[1]})
    if not lines and not any(case["first"] == "timed" and case["second"] in BROKEN for case in apart):
        raise Refusal("no case has a time on both sides; expected runs, or backends, that share timed cases")
    return lines, apart


def _machines(first: Run, second: Run, across: bool) -> list[str]:
    """What differs, in sentences."""
    one, other = dict(first.environment), dict(second.environment)
    for side in (one, other):  # virtual machines differ by some pages from start to start
        side["memory_bytes"] = round((side.get("memory_bytes") or 0) / 2**30)
    unlike = [key for key in MACHINE if one.get(key) != other.get(key)]
    if unlike and not across:
        what = ", ".join(f"{key} {one.get(key)} and {other.get(key)}" for key in unlike)
        raise Refusal(f"the runs are of unlike machines ({what}); expected the same, or --across-machines")
    changed = [key for key in one if key not in (*MACHINE, *BESIDE) and one[key] != other.get(key)]
    notes = [f"THE MACHINES ARE UNLIKE: {', '.join(unlike)} differ."] if unlike else []
    return [*notes, f"What changed from the first to the second: {', '.join(changed) or 'nothing that is recorded'}."]


def _sampling(first: Run, second: Run) -> list[str]:
    """What else keeps two runs from being alike. Raises Refusal where samples found the caches otherwise."""
    caches = [run.plan.get("cache") or run.plan["device"] for run in (first, second)]
    if caches[0] != caches[1] and "cold" in caches:
        raise Refusal(f"samples of the runs found the caches {caches[0]} and {caches[1]}; expected the same")
    notes = ["The noise floor is of passes within a run; what moved a whole run is seen by the canary alone."]
    if not all(run.cases["canary_by_pass"].map(bool).any() for run in (first, second)):
        notes.append("A run has no canaries: whether the machine changed its speed between the runs is not known.")
    return notes


def _margin(asked: float | None, floor: float | None) -> float:
    if asked is not None and asked > 1:
        raise Refusal(f"margin {asked:g}; expected a share, 0.02 for 2 %")
    if asked is not None and floor is not None and asked < floor:
        raise Refusal(
            f"margin {asked:.2%} is below the noise floor {floor:.2%}, by which identical cases differ here; "
            "expected at least that, or more passes"
        )
    return MARGIN if asked is None else asked


def _agreed(plain: Verdict, adjusted: Verdict | None) -> Verdict:
    """adjusted: by times divided by the canary's; None where a side has no canaries."""
    if adjusted is None or plain.word in (adjusted.word, "inconclusive"):
        return plain
    return Verdict("inconclusive", f"{plain.word}, but {adjusted.word} by times that are divided by the canary's")
