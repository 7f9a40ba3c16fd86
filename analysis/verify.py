"""Prove the counts: over every distinct case, closed form = dispatch on meta = dispatch on the device, exactly.

Each case in inference and in training. fvcore agrees too, or differs by exactly what is named. A difference that
nothing names is a fault, and so is a case that runs here but that no counter could count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from vitbench.backend import refused
from vitbench.case import Case
from vitbench.counting import Finding, findings
from vitbench.operator import MODES


@dataclass(frozen=True)
class Verdict:
    """All that was counted of one case."""

    case: Case
    findings: tuple[Finding, ...]

    @property
    def fault(self) -> str | None:
        """What is wrong, in one sentence; None where every count is explained."""
        for found in self.findings:
            if found.unexplained:
                return f"{found.key}: {found.unexplained:+,} MACs that nothing explains"
            if found.uncounted and not found.differences:
                return f"{found.key} did not count {', '.join(found.uncounted)}, and no difference is named for it"
        if all(found.macs is None for found in self.findings) and not refused(self.case):
            return "it runs here, but no counter could count it"
        return None

    def to_dict(self) -> dict[str, Any]:
        counts = {
            found.key: {"macs": found.macs, "differences": dict(found.differences), "reason": found.reason}
            for found in self.findings
        }
        return {"id": self.case.id, "closed": self.findings[0].closed, "counts": counts, "fault": self.fault}


def both_modes(cases: Iterable[Case]) -> list[Case]:
    """Each case in inference and in training, each once."""
    return list(dict.fromkeys(replace(case, mode=mode) for case in cases for mode in MODES))


def verify(cases: Iterable[Case]) -> Iterator[Verdict]:
    """One verdict a case; counting on the device runs the case once."""
    for case in cases:
        yield Verdict(case, tuple(findings(case)))
