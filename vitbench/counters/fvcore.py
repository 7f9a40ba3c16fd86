"""Count with fvcore: a jit trace of the forward pass, formulas by operator; its "flops" are MACs.

It has no formula for scaled_dot_product_attention, adds norms and pooling, and sees no backward.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from vitbench.aten import has_no_products
from vitbench.case import Case
from vitbench.counter import Count, Counter, Uncountable, counters
from vitbench.program import Program
from vitbench.put_back import put_back

NO_PRODUCTS = {  # what fvcore counts beside products, by its own operator names
    "layer_norm": "5 per element",
    "batch_norm": "1 or 2 per element",
    "adaptive_avg_pool2d": "1 per input element",
    "grid_sampler": "4 per element",
}


class Fvcore(Counter):
    name = "fvcore"
    packages = ("fvcore",)
    convention = "MACs (it calls them flops), norms and pooling among them"

    def count(self, program: Program) -> Count:
        if lacking := self.lacking():
            raise Uncountable(lacking)
        from fvcore.nn import FlopCountAnalysis

        analysis = FlopCountAnalysis(program.module, program.inputs)
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
        try:
            # A forward pass in the grad mode at hand; in training torch cannot trace what some backends run.
            grad = torch.is_grad_enabled() and not program.training
            with put_back(program.module), torch.set_grad_enabled(grad):
                operators = {str(name): int(macs) for name, macs in analysis.by_operator().items()}
        except RuntimeError as error:
            raise Uncountable(f"fvcore cannot trace this: {str(error).splitlines()[0]}") from error
        except TypeError as error:  # of a convolution's rule for meta tensors, whose sizes a trace turns into tensors
            raise Uncountable("fvcore cannot trace a convolution on meta tensors with this torch") from error
        return Count(operators, tuple(sorted(filter(_may_hold_products, map(str, analysis.unsupported_ops())))))

    def differences(self, case: Case, count: Count) -> Mapping[str, int]:
        found = {}
        forward = case.operator.cost(case.shape, case.scope)
        if case.mode == "training":
            found["fvcore traces the forward pass alone"] = forward.total_macs - case.cost().total_macs
        if "aten::scaled_dot_product_attention" in count.uncounted:
            missed = forward.macs["scores"] + forward.macs["mix"]
            found["fvcore has no handle for scaled_dot_product_attention: -2N^2 D"] = -missed
        for name, macs in count.operators.items():
            if macs and name in NO_PRODUCTS:
                found[f"fvcore counts {NO_PRODUCTS[name]} of {name} as if they were MACs"] = macs
        return found


def _may_hold_products(name: str) -> bool:
    """name: as in the trace, aten::mul."""
    namespace, _, operator = name.partition("::")
    return namespace != "aten" or not has_no_products(getattr(torch.ops.aten, operator))


counters.add(Fvcore())
