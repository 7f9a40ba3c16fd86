"""What a process holds for all that runs in it: a test that leaves it changed changes the tests that follow."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import module

MODULES = ("timm.layers.config", "timm.layers.fast_norm", "timm.layers.norm")
PACKAGES_SET = ("PYTEST_", "TORCHINDUCTOR_", "_TORCHINDUCTOR_", "KMP_", "KINETO_", "PYTORCH_NVML_")  # as they are used
MADE_ANEW = ("torch.manual_seed",)  # by torch itself, as it first compiles


def switches() -> Mapping[str, Any]:
    """By name; two of them are the same where each value is the same object or equal."""
    cuda = torch.backends.cuda
    known = [logging.getLogger(name) for name in sorted(logging.root.manager.loggerDict)]
    found: dict[str, Any] = {
        **{f"${name}": value for name, value in os.environ.items() if not name.startswith(PACKAGES_SET)},
        **{f"level of {one.name}": one.level for one in [logging.root, *known]},
        "oneDNN": torch.backends.mkldnn.enabled,
        "the working directory": Path.cwd(),
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": str(torch.get_default_device()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision of float32 products": torch.get_float32_matmul_precision(),
        "autocast": [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")],
        "kernels of attention": [one() for one in (cuda.flash_sdp_enabled, cuda.math_sdp_enabled)],
        "efficient attention": cuda.mem_efficient_sdp_enabled(),
        "halves in attention": cuda.fp16_bf16_reduction_math_sdp_allowed(),
        "hooks of all modules": {name: bool(one) for name, one in vars(module).items() if name.startswith("_global_")},
        "modes": torch._C._len_torch_dispatch_stack() + torch._C._len_torch_function_stack(),
    }
    places = {"torch": torch, "functional": functional, **{name: sys.modules.get(name) for name in MODULES}}
    for place, held in places.items():
        found |= {f"{place}.{name}": _Same(value) for name, value in vars(held).items()} if held else {}
    return found


class _Same:
    """Equal to itself alone: a function that was put in another's place may compare as anything."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __repr__(self) -> str:
        return repr(self.value)


def moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Of what there was before, and new variables of the environment. A module imported on the way brings its own."""
    names = [*before, *(name for name in after if name.startswith("$") and name not in before)]
    pairs = ((name, before.get(name), after.get(name)) for name in names if name not in MADE_ANEW)
    return [f"{name}: {was} before, {now} after" for name, was, now in pairs if was != now]
