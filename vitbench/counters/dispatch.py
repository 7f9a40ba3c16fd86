"""Count at the dispatcher: torch's FlopCounterMode, with the formulas it lacks for attention.

It sees the operators that run on the device at hand, so the count depends on which kernel torch chooses: a fused
backward computes the scores again and is counted doing so. Compiled code is NOT seen; count with the compiler off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, _FlopCounterMode

from vitbench.aten import has_no_products
from vitbench.case import Case
from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.formulas import FORMULAS
from vitbench.program import Program


def _let_through(operator: Any) -> None:
    """Give the counter's mode a rule for a higher-order operator: without one it raises."""

    @operator.py_impl(_FlopCounterMode)  # type: ignore[untyped-decorator]
    def count_and_run(mode: Any, *args: Any, **kwargs: Any) -> Any:
        return mode.counter._count_flops(operator, operator(*args, **kwargs), args, kwargs)


for _operator in (flex_attention, flex_attention_backward):
    _let_through(_operator)


class Dispatch(Counter):
    name = "dispatch"
    places = ("device", "meta")
    audited = ("meta", "device")
    convention = "FLOPs, 2 a MAC"

    def count(self, program: Program) -> Count:
        counter, seen = FlopCounterMode(display=False, custom_mapping=FORMULAS), _Seen()
        try:
            # The inner mode, without the module tracker, whose hooks refuse gradients of inputs. It is asked first
            # and decomposes what it can; seen gets the rest.
            with seen, _FlopCounterMode(counter):
                program.call()
        except (NotImplementedError, ValueError) as error:
            raise Uncountable(str(error).split("\n")[0]) from error
        found = counter.get_flop_counts().get("Global", {})
        counted = {str(operator): flops // 2 for operator, flops in found.items()}
        unknown = {str(func) for func in seen.funcs if func not in counter.flop_registry and not has_no_products(func)}
        return Count(counted, tuple(sorted(unknown)), raw=2 * sum(counted.values()))

    def differences(self, case: Case, count: Count) -> Mapping[str, int]:
        fused = [name for name in count.operators if "attention" in name and "backward" in name]
        scores = int(case.operator.cost(case.shape, case.scope).macs.get("scores", 0))
        return {f"{name} computes the scores again: +N^2 D": scores for name in fused}


class _Seen(TorchDispatchMode):
    """The operators that reach the device."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.funcs: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.funcs.add(getattr(func, "_overloadpacket", func))
        return func(*args, **(kwargs or {}))


counters.add(Dispatch())
