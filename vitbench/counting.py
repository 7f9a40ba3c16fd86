"""Every counter on one case, each difference from the closed form explained or left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.counter import Counter, Uncountable, counters
from vitbench.program import build


@dataclass(frozen=True)
class Finding:
    """What one counter says of one case at one place.

    key: as in a record: dispatch (at the counter's first place), dispatch.meta. macs: None where it could not count,
    and then reason says why. differences: signed MACs by named reason.
    """

    key: str
    closed: int
    macs: int | None
    uncounted: tuple[str, ...]
    differences: Mapping[str, int]
    reason: str | None

    @property
    def unexplained(self) -> int:
        """MACs of the count that neither the closed form nor a named difference accounts for."""
        return 0 if self.macs is None else self.macs - self.closed - sum(self.differences.values())


def findings(case: Case) -> Iterator[Finding]:
    """Each registered counter at each of its places."""
    for counter in counters:
        for place in counter.places:
            yield _find(case, counter, place)


def _find(case: Case, counter: Counter, place: str) -> Finding:
    closed = int(case.cost().total_macs)
    key = counter.name if place == counter.places[0] else f"{counter.name}.{place}"
    if place == "device" and (reason := backends[case.backend].unsupported(case)):
        return Finding(key, closed, None, (), {}, f"not run: {reason}")
    program = build(case, device="meta" if place == "meta" else None)
    try:
        with backends[case.backend].counting():
            count = counter.count(program)
    except Uncountable as error:
        return Finding(key, closed, None, (), {}, str(error))
    differences = counter.differences(case, count)
    return Finding(key, closed, count.macs, count.uncounted, differences, None)
