"""Count with thop: hooks of known classes of modules; its "macs" hold 4 for each element of a norm."""

from __future__ import annotations

import importlib.util

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back


class Thop(Counter):
    name = "thop"
    packages = ("thop",)
    places = ()
    convention = "MACs, norms and pooling among them"

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from thop import profile

        with put_back(program.module):
            found, _ = profile(program.module, program.inputs, verbose=False)
        return Count({"all": int(found)})

    def lacking(self) -> str | None:
        found = any(map(importlib.util.find_spec, ("distutils", "setuptools")))
        without = None if found else "thop imports distutils, which this Python lacks: pip install setuptools"
        return super().lacking() or without


counters.add(Thop())
