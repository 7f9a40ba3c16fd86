"""Is the evidence for a case enough, or is another pass wanted?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from vitbench.interval import estimate, half_width
from vitbench.worker import TAKES

ENDING = ("unsupported", "wrong_result", "out_of_memory")  # another pass would end in the same
LOST = ("crashed", "timed_out")  # the pass is; a case that did so twice is given up
MOST_LOST = 2

Line = Mapping[str, Any]  # a record as it was read


@dataclass(frozen=True)
class Effort:
    """How much is done for an estimate.

    least, most: passes of a case. precision: half-width of the 95 % interval, as a share of the estimate, at which no
    pass is added; None if least is enough. budget: seconds of wall time within which passes beyond least are added;
    None: no limit. case_limit: seconds without a record after which the case in hand is given up.
    """

    least: int
    most: int
    precision: float | None = None
    budget: float | None = None
    case_limit: float = 600.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def usable(lines: Sequence[Line]) -> list[Line]:
    """Of a case's records: those whose samples are to be used; none where a result was wrong."""
    if any(line["state"] == "wrong_result" for line in lines):
        return []
    return [line for line in lines if line["state"] == "ok"]


def ended(lines: Sequence[Line]) -> set[int]:
    """Of a case's records: the passes that are over. A disturbed one is, once it was taken as often as it is."""
    takes = Counter(line["pass"] for line in lines)
    others = {line["pass"] for line in lines if line["state"] != "disturbed"}
    return {pass_ for pass_, taken in takes.items() if pass_ in others or taken >= TAKES}


def wanting(lines: Sequence[Line], effort: Effort) -> bool:
    """lines: a case's records so far."""
    states = [line["state"] for line in lines]
    if any(state in ENDING for state in states) or sum(state in LOST for state in states) >= MOST_LOST:
        return False
    if len(ended(lines)) >= effort.most:
        return False
    taken = [line["seconds"] for line in usable(lines)]
    if len(taken) < effort.least:
        return True
    return half_width(estimate(taken)) > (inf if effort.precision is None else effort.precision)
