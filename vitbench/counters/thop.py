"""Count with thop: hooks of known classes of modules; its "macs" hold 4 for each element of a norm."""

from __future__ import annotations

import importlib.util

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program


class Thop(Counter):
    name = "thop"
    places = ()
    convention = "MACs, norms and pooling among them"

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from thop import profile

        found, _ = profile(program.module, program.inputs, verbose=False)
        return Count({"all": int(found)})

    def lacking(self) -> str | None:
        if importlib.util.find_spec("thop") is None:
            return "thop is not installed: pip install thop"
        if importlib.util.find_spec("distutils") is None and importlib.util.find_spec("setuptools") is None:
            return "thop imports distutils, which this Python lacks: pip install setuptools"
        return None


counters.add(Thop())
