"""Which attention kernel was asked for, which torch chose, and which ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CHOICES = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}  # of SDPBackend, -1 is an error

# What stands in the name of an operator that ran -> the kernel. In compiled code only its own graph has a name.
OPERATORS = {
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_scaled_dot_product_fused_attention_overrideable": "overrideable",
    "_scaled_dot_product_attention_math": "math",
}
BESIDE = {"CompiledFxGraph": "compiled", "aten::_softmax": "products"}  # looked for where none of these ran


class _Choices(TorchFunctionMode):
    """Asks torch which kernel it would choose for each scaled_dot_product_attention."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.scaled_dot_product_attention:
            choice = torch._fused_sdp_choice(*args, **kwargs)
            self.found.append(CHOICES.get(choice, f"unknown ({choice})"))
        return func(*args, **kwargs)


def choices(call: Callable[[], Any]) -> list[str]:
    """What torch chooses for each scaled_dot_product_attention of the call, distinct, in order."""
    with _Choices() as mode:
        call()
    return list(dict.fromkeys(mode.found))


def kernels_of(operators: Iterable[str]) -> list[str]:
    """The attention kernels that names of operators show: flash, math, products (and softmax), compiled; or none."""
    names = list(operators)
    for known in (OPERATORS, BESIDE):
        if found := [kernel for part, kernel in known.items() if any(part in name for name in names)]:
            return found
    return []
