"""Audits a published table: counts each of its models again, infers its convention, judges its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vitbench.published.counts import Job, Recount, sources
from vitbench.published.processes import Counting, counting
from vitbench.published.table import Row, Table
from vitbench.published.verdicts import Convention, Verdict, agreeing, convention_of, explained, judged, unit_of

Advance = Callable[[int, int], None]  # told how many models are counted, and of how many
Sources = Mapping[str, str | None]


@dataclass(frozen=True)
class Audit:
    """sources: by the name of a model. convention: None where no row could be counted.

    agreeing: how many rows follow it, but for what a tool passes over, of the counted ones. interrupted: what was not
    counted by then is unknown.
    """

    table: Table
    sources: Sources
    verdicts: Sequence[Verdict]
    convention: Convention | None
    agreeing: int
    counted: int
    interrupted: bool


@dataclass
class _Results:
    found: dict[Job, Recount | str] = field(default_factory=dict)
    interrupted: bool = False

    def count(self, processes: Counting, jobs: Sequence[Job], advance: Advance) -> None:
        """What is not known yet. Ctrl-C ends it, and what there is stays."""
        jobs = [job for job in dict.fromkeys(jobs) if job not in self.found]
        try:
            for done, (job, result) in enumerate(processes.of(jobs), 1):
                self.found[job] = result
                advance(done, len(jobs))
        except KeyboardInterrupt:
            self.interrupted = True

    def of(self, job: Job | None) -> Recount | None:
        found = self.found.get(job) if job else None
        return found if isinstance(found, Recount) else None


def audit(table: Table, advance: Advance) -> Audit:
    """Raises Refusal where there is no library of models."""
    known, results = sources(row.model for row in table.rows), _Results()
    jobs = [_job(row, known) for row in table.rows]
    with counting() as processes:
        results.count(processes, [job for job in jobs if job], advance)
        rows, pairs = _paired(table.rows, jobs, results)
        convention = convention_of(pairs) if pairs else None
        if convention and not results.interrupted:
            results.count(processes, _puzzles(rows, jobs, results, convention), advance)
    verdicts = [_verdict(row, job, results, convention) for row, job in zip(rows, jobs, strict=True)]
    follow = agreeing(convention, pairs) if convention else 0
    return Audit(table, known, verdicts, convention, follow, len(pairs), results.interrupted)


def _job(row: Row, known: Sources) -> Job | None:
    """What to count for a row, if there is anything."""
    source = known[row.model]
    return (source, row.image) if source and row.published else None


def _paired(
    rows: Sequence[Row], jobs: Sequence[Job | None], results: _Results
) -> tuple[list[Row], list[tuple[Row, Recount]]]:
    """All rows with their units, and those that are counted with their counts."""
    counted = [(row, one) for row, job in zip(rows, jobs, strict=True) if (one := results.of(job)) and one.macs]
    nameless = [(row, one) for row, one in counted if not row.unit]
    unit = unit_of(nameless) if nameless else None
    counted = [(replace(row, unit=row.unit or unit), one) for row, one in counted]
    return [replace(row, unit=row.unit or unit) for row in rows], counted


def _puzzles(rows: Sequence[Row], jobs: Sequence[Job | None], results: _Results, convention: Convention) -> list[Job]:
    """What is to be counted at its own image, as its row has no reason yet."""
    found = [(row, job, results.of(job)) for row, job in zip(rows, jobs, strict=True)]
    return [(job[0], None) for row, job, one in found if job and one and not explained(row, one, convention)]


def _verdict(row: Row, job: Job | None, results: _Results, convention: Convention | None) -> Verdict:
    if job is None:
        reason = "neither timm nor torchvision has it" if row.published else "the table has no number for it"
        return Verdict(row, "unknown", reason)
    one, own = results.of(job), results.of((job[0], None))
    if one is None or not one.macs or convention is None:
        why = results.found.get(job, "it was not counted before Ctrl-C")
        return Verdict(row, "unknown", why if isinstance(why, str) else "it has no products")
    return judged(row, one, convention, own if own and own.image != one.image else None)
