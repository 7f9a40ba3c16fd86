"""Peak bytes of one call, from the lifetimes of tensors as the device's own operators give and keep them.

The call runs on fake tensors: they say which device they are on, so torch chooses operators (which form of attention,
for one) as it would there, and nothing is allocated nor computed. What an operator takes and gives back within itself
is in it as far as `workspace` knows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from vitbench import compiler
from vitbench.exact.lifetimes import Lifetimes
from vitbench.exact.watch import tensors

Workspace = Callable[[Any, Any, Any], int]  # bytes that an operator of those args and kwargs takes within itself


class Peak(NamedTuple):
    """Most bytes held at once above parameters, buffers and inputs. gradients: of them, those of parameters."""

    bytes: int
    gradients: int


def peak(
    module: nn.Module,
    inputs: tuple[Any, ...],
    *,
    training: bool,
    device: str,
    workspace: Workspace | None = None,
    granule: int = 1,
) -> Peak:
    """Of forward; in training of forward and backward, parameters without gradients before it.

    module, inputs: on any device; they stay as they are. granule: bytes of which the device's allocator gives whole
    multiples. Whatever the module or torch raises goes through. Raises
    ValueError where nothing that it gives takes a gradient.
    """
    with (
        warnings.catch_warnings(),
        redirect_stdout(sys.stderr),
        compiler.turned_off(),
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.device(device),
    ):
        warnings.simplefilter("ignore")  # of how a program runs, not of what it holds
        fakes = _Fakes(device)
        held = {name: fakes(one) for name, one in (*module.named_parameters(), *module.named_buffers())}
        given = torch.utils._pytree.tree_map_only(Tensor, fakes, inputs)
        weights = [one for one in fakes.made.values() if isinstance(one, nn.Parameter)]
        seen = _Live(Lifetimes(fakes.made.values(), granule), workspace)
        with torch.set_grad_enabled(training), seen:
            result = functional_call(module, held, given)
            if training:
                outputs = [one for one in tensors(result) if one.requires_grad]
                if not outputs:
                    raise ValueError("nothing that it gives takes a gradient")
                torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])
        return Peak(*seen.lifetimes.highest([one.grad for one in weights if one.grad is not None]))


class _Fakes:
    """Makes one fake of each tensor, on a device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.made: dict[int, Tensor] = {}

    def __call__(self, one: Tensor) -> Tensor:
        if id(one) not in self.made:
            like = torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=self.device)
            made = nn.Parameter(like, one.requires_grad) if isinstance(one, nn.Parameter) else like
            self.made[id(one)] = made.requires_grad_(one.requires_grad)
        return self.made[id(one)]


class _Live(TorchDispatchMode):
    """Sees what operators give."""

    def __init__(self, lifetimes: Lifetimes, workspace: Workspace | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lifetimes, self.workspace = lifetimes, workspace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.lifetimes.see(tensors(result))
        if self.workspace is not None:
            self.lifetimes.within(self.workspace(func, args, kwargs))
        return result
