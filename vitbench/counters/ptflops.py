"""Count with ptflops: hooks of modules and patched functions, or its operators at the dispatcher.

It gives MACs and elementwise outputs in one number; of a whole batch here.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back


class Ptflops(Counter):
    """backend: of ptflops, "pytorch" (hooks and patches) or "aten" (the dispatcher)."""

    places = ()
    packages = ("ptflops",)

    def __init__(self, name: str, backend: str, convention: str) -> None:
        self.name, self.backend, self.convention = name, backend, convention

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from ptflops import get_model_complexity_info

        with put_back(program.module):
            found, _ = get_model_complexity_info(
                _AsOne(program.module),
                (1,),
                print_per_layer_stat=False,
                as_strings=False,
                input_constructor=lambda _: [program.inputs],
                backend=self.backend,
            )
        if found is None:
            raise Uncountable("ptflops did not finish; it prints why")
        return Count({"all": int(found)})


class _AsOne(nn.Module):
    """A module whose inputs are one item: ptflops passes one input, and divides by its length what its hooks count, but
    not what its patches count.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, items: list[tuple[Tensor, ...]]) -> Any:
        return self.module(*items[0])


counters.add(Ptflops("ptflops", "pytorch", "MACs, biases and elementwise outputs"))
counters.add(Ptflops("ptflops.aten", "aten", "MACs and biases"))
