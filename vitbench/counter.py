"""The contract of a counter: MACs of a running program, by operator, and what was not counted."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitbench.registry import Registry

if TYPE_CHECKING:
    from vitbench.case import Case
    from vitbench.program import Program


@dataclass(frozen=True)
class Count:
    """operators: MACs by operator name, as this counter has them. uncounted: names of operators it has no formula for.

    An operator without products (softmax, norm, copy) is no omission and is not listed. raw: the number that the
    counter itself gives, in its own convention; None where that is the sum of the operators.
    """

    operators: Mapping[str, int]
    uncounted: tuple[str, ...] = ()
    raw: int | None = None

    @property
    def macs(self) -> int:
        return sum(self.operators.values())


class Counter(ABC):
    """places: where it counts the cases of a sweep: "device" (the case's own) or "meta" (shapes alone, no memory, any
    size); none for what is asked in audits alone, because it patches torch or the module.
    audited: where an audit, in a process of its own, counts a whole model with it.
    convention: what the number that it gives is, in words. packages: that it needs.
    """

    name: str
    places: tuple[str, ...] = ("meta",)
    audited: tuple[str, ...] = ("device",)
    convention: str = "MACs"
    packages: tuple[str, ...] = ()

    @abstractmethod
    def count(self, program: Program) -> Count:
        """MACs of one call of the program. A program that this counter cannot follow raises Uncountable."""

    def lacking(self) -> str | None:
        """Why this counter can count nothing here, with the remedy; None if it can."""
        missing = [package for package in self.packages if importlib.util.find_spec(package) is None]
        return f"{missing[0]} is not installed: pip install {missing[0]}" if missing else None

    def differences(self, case: Case, count: Count) -> Mapping[str, int]:
        """Why this count differs from the closed form of the case: signed MACs by named reason, from closed forms."""
        return {}


class Uncountable(RuntimeError):
    """Why a counter has no number for a program, in one sentence. Not zero: nothing was counted."""


counters: Registry[Counter] = Registry("counter", "vitbench.counters")
