"""Count with DeepSpeed's profiler: patched functions of torch. Its MACs are taken, not its flops."""

from __future__ import annotations

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back


class Deepspeed(Counter):
    name = "deepspeed"
    packages = ("deepspeed",)
    places = ()

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from deepspeed.profiling.flops_profiler import get_model_profile

        args = [*program.inputs]
        with put_back(program.module):
            _, found, _ = get_model_profile(program.module, args=args, print_profile=False, as_string=False)
        return Count({"all": int(found)})


counters.add(Deepspeed())
