"""Count with calflops: patched functions of torch. Its MACs, not its FLOPs, which hold elementwise outputs."""

from __future__ import annotations

import importlib.util

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program


class Calflops(Counter):
    name = "calflops"
    places = ()

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from calflops import calculate_flops

        args = [*program.inputs]
        _, found, _ = calculate_flops(program.module, args=args, print_results=False, output_as_string=False)
        return Count({"all": int(found)})

    def lacking(self) -> str | None:
        needed = ("calflops", "transformers")  # which it imports and does not ask for
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
        return f"calflops needs {missing[0]}, not installed: pip install {missing[0]}" if missing else None


counters.add(Calflops())
