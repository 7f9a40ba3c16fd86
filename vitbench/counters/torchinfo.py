"""Count with torchinfo's "mult-adds": parameters of modules without children times a size of their outputs."""

from __future__ import annotations

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back


class Torchinfo(Counter):
    name = "torchinfo"
    packages = ("torchinfo",)
    places = ()
    convention = "mult-adds: parameters times the first dimension of outputs"

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from torchinfo import summary

        mode = "train" if program.module.training else "eval"
        with put_back(program.module):
            found = summary(program.module, input_data=[*program.inputs], mode=mode, verbose=0)
        return Count({"all": int(found.total_mult_adds)})


counters.add(Torchinfo())
