"""Count with torch's own FlopCounterMode as it comes, without the formulas that it lacks.

An operator without a formula counts 0 without a word (pytorch#195460), so the count depends on the kernel that runs.
"""

from __future__ import annotations

from torch.utils.flop_counter import FlopCounterMode

from vitbench.counter import Count, Counter, counters
from vitbench.program import Program


class AsItComes(Counter):
    name = "torch"
    places = ()
    audited = ("device", "meta")
    convention = "FLOPs, 2 a MAC"

    def count(self, program: Program) -> Count:
        with FlopCounterMode(display=False) as counter:
            program.call()
        found = counter.get_flop_counts().get("Global", {})
        counted = {str(operator): flops // 2 for operator, flops in found.items()}
        return Count(counted, raw=counter.get_total_flops())


counters.add(AsItComes())
