"""A case as a running program: module, inputs, one call of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from vitbench.attention import Size
from vitbench.backend import backends
from vitbench.case import Case
from vitbench.layer import Attend, Block, Core, layers
from vitbench.operator import MLP_RATIO

Result = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class Program:
    """module: takes inputs. inputs: as the operator says, or q, k, v of each of its attentions in scope core."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    training: bool

    @property
    def leaves(self) -> list[Tensor]:
        """What gradients are taken of in training: inputs (but a model's image), then parameters."""
        return [leaf for leaf in (*self.inputs, *self.module.parameters()) if leaf.requires_grad]

    def call(self, gradients: tuple[Tensor, ...] | None = None) -> Any:
        """Run once: the result in inference; result and gradients of the leaves in training.

        gradients: of the outputs; ones if None.
        """
        if not self.training:
            with torch.inference_mode():
                return self.module(*self.inputs)
        result = self.module(*self.inputs)
        outputs = outputs_of(result)
        gradients = tuple(map(torch.ones_like, outputs)) if gradients is None else gradients
        return result, torch.autograd.grad(outputs, self.leaves, gradients)

    def wrapped(self, backend: str) -> Program:
        """As that backend runs it: compiled, captured, or as it is."""
        return replace(self, module=backends[backend].wrap(self.module))

    def runner(self) -> Callable[[], Any]:
        """What is timed: call, with all that can be made beforehand made."""
        if not self.training:
            return self.call
        gradients = tuple(map(torch.ones_like, outputs_of(self.call()[0])))
        return lambda: self.call(gradients)


def outputs_of(result: Result) -> tuple[Tensor, ...]:
    """What a module gave, one tensor or several, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def build(case: Case, *, device: str | None = None, seed: int = 0, attend: Attend | None = None) -> Program:
    """The case's module with seeded random weights, and seeded standard normal inputs.

    device: where instead of the case's own, for instance "meta". attend: instead of the backend's.
    The same seed gives the same weights and inputs for every backend, dtype (up to rounding) and device.
    """
    device, training = device or case.device, case.mode == "training"
    dtype = getattr(torch, case.dtype)
    module = _module(case, attend or backends[case.backend].attend, seed if device != "meta" else None)
    module = module.to(device=device, dtype=dtype).train(training).requires_grad_(training)
    inputs = tuple(
        torch.empty(size, dtype=dtype, device=device)
        if device == "meta"
        else torch.randn(size, generator=torch.Generator().manual_seed(seed + n)).to(device=device, dtype=dtype)
        for n, size in enumerate(_input_sizes(case))
    )
    differentiated = training and case.scope != "model"  # no one takes the gradient of an image
    return Program(module, tuple(x.requires_grad_(differentiated) for x in inputs), training)


def _module(case: Case, attend: Attend, seed: int | None) -> nn.Module:
    with torch.random.fork_rng(devices=[]), torch.device("meta" if seed is None else "cpu"):
        torch.manual_seed(seed or 0)
        layer = layers[case.operator.name](case.operator, case.shape, attend)
        return {"core": Core, "layer": _same, "block": _block, "model": _same}[case.scope](layer)


def _same(layer: nn.Module) -> nn.Module:
    return layer


def _block(layer: Any) -> nn.Module:
    return Block(layer, MLP_RATIO * layer.shape.dim)


def _input_sizes(case: Case) -> tuple[Size, ...]:
    if case.scope != "core":
        return case.operator.inputs(case.shape)
    return tuple(size for attention in case.attentions for size in (attention.q, attention.k, attention.v))
