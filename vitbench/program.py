"""A case as a running program: module, inputs, one call of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.layer import Attend, Block, Core, layers
from vitbench.operator import MLP_RATIO


@dataclass(frozen=True)
class Program:
    """module: takes inputs. inputs: one tensor (B, N, D), or q, k, v of (B, G, H, N, d) in scope core."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    training: bool

    @property
    def leaves(self) -> list[Tensor]:
        """What gradients are taken of in training: inputs, then parameters."""
        return [*self.inputs, *self.module.parameters()]

    def call(self, gradient: Tensor | None = None) -> Any:
        """Run once: the output in inference; output and gradients of the leaves in training.

        gradient: of the output; ones if None.
        """
        if not self.training:
            with torch.inference_mode():
                return self.module(*self.inputs)
        output = self.module(*self.inputs)
        gradient = torch.ones_like(output) if gradient is None else gradient
        return output, torch.autograd.grad(output, self.leaves, gradient)

    def wrapped(self, backend: str) -> Program:
        """As that backend runs it: compiled, captured, or as it is."""
        return replace(self, module=backends[backend].wrap(self.module))

    def runner(self) -> Callable[[], Any]:
        """What is timed: call, with all that can be made beforehand made."""
        if not self.training:
            return self.call
        gradient = torch.ones_like(self.call()[0])
        return lambda: self.call(gradient)


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
    return Program(module, tuple(x.requires_grad_(training) for x in inputs), training)


def _module(case: Case, attend: Attend, seed: int | None) -> nn.Module:
    with torch.random.fork_rng(devices=[]), torch.device("meta" if seed is None else "cpu"):
        torch.manual_seed(seed or 0)
        layer = layers[case.operator.name](case.operator, case.shape, attend)
        return {"core": Core, "layer": _same, "block": _block}[case.scope](layer)


def _same(layer: nn.Module) -> nn.Module:
    return layer


def _block(layer: Any) -> nn.Module:
    return Block(layer, MLP_RATIO)


def _input_sizes(case: Case) -> list[tuple[int, ...]]:
    shape = case.shape
    if case.scope != "core":
        return [(shape.batch, shape.tokens, shape.dim)]
    groups = case.operator.groups(shape)
    size: tuple[int, ...] = (shape.batch, groups.count, shape.heads, groups.tokens, shape.head_dim)
    return [size] * 3
