"""Count with calflops: patched functions of torch. Its MACs, not its FLOPs, which hold elementwise outputs."""

from __future__ import annotations

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back


class Calflops(Counter):
    name = "calflops"
    packages = ("calflops", "transformers")  # calflops imports it and does not ask for it
    places = ()

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from calflops import calculate_flops

        args = [*program.inputs]
        with put_back(program.module):
            _, found, _ = calculate_flops(program.module, args=args, print_results=False, output_as_string=False)
        return Count({"all": int(found)})


counters.add(Calflops())
