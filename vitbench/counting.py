"""Every counter on one case, each difference from the closed form explained or left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

from vitbench import compiler
from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.counter import Counter, Uncountable, counters
from vitbench.fit import too_large
from vitbench.program import Program, build


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


def findings(case: Case, program: Program | None = None) -> Iterator[Finding]:
    """Each registered counter at each of its places. program: the case's own, if it is there and not compiled."""
    for counter in counters:
        for place in counter.places:
            yield _find(case, counter, place, program)


def _find(case: Case, counter: Counter, place: str, program: Program | None) -> Finding:
    closed = int(case.cost().total_macs)
    key = counter.name if place == counter.places[0] else f"{counter.name}.{place}"
    backend = backends[case.backend]
    if place == "device" and (reason := refused(case) or too_large(case, uncompiled=True)):
        return Finding(key, closed, None, (), {}, f"not run: {reason}")
    try:
        if place == "meta":
            program = build(case, device="meta")
        with compiler.turned_off() if backend.compiled else nullcontext():
            count = counter.count(program or build(case))
        differences = counter.differences(case, count)
    except Uncountable as error:
        return Finding(key, closed, None, (), {}, str(error))
    except Exception as error:  # a counter that fails must not cost the case its time; the reason is kept
        said = (str(error).strip().splitlines() or ["no message"])[0]
        return Finding(key, closed, None, (), {}, f"{type(error).__name__}: {said}")
    return Finding(key, closed, count.macs, count.uncounted, differences, None)
