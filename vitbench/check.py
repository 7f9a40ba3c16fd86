"""Is the result right? A case against float64, before any time is given for it.

The reference is the same module with the same weights in float64, attending by the definition. Where the score matrix
would be large, only some query rows are computed, drawn evenly with a fixed seed, and only they are compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from zlib import crc32

import torch
from torch import Tensor

from vitbench.case import Case
from vitbench.program import Program, build

# Largest error over the largest magnitude of the reference. Rounding of inputs and weights to the dtype is in it.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 5e-2}
MOST_ROWS = 1024  # queries of a single group up to which all are checked
SAMPLED_ROWS = 64
SMALL = 1e-2  # of the largest magnitude of all results: what is smaller is not judged by its own size

_BESIDE_THE_LAYER = re.compile(r"\b(norm1|norm2|mlp)\.")


@dataclass(frozen=True)
class Attend:
    """softmax(q k^T / sqrt(d) + bias) v by the definition, for the query rows given; zeros in the others."""

    rows: Tensor

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor | None, mask: Tensor | None) -> Tensor:
        scores = torch.einsum("bghnd,bghmd->bghnm", q[..., self.rows, :], k) / q.shape[-1] ** 0.5
        if bias is not None:
            scores = scores + bias[..., self.rows, :]
        if mask is not None:
            scores = scores.masked_fill(~mask[..., self.rows, :], float("-inf"))
        mixed = torch.einsum("bghnm,bghmd->bghnd", scores.softmax(-1), v)
        return torch.zeros_like(q).index_copy(-2, self.rows, mixed)


class Wrong(Exception):
    """A result that is no attention of its inputs at all, in one sentence."""


def error(case: Case, program: Program) -> float:
    """Largest relative error of output, and in training of every gradient; NaN or infinity where the case has it.

    program: the case's own, as it will be timed, but on inputs drawn for this case alone: memory left behind by another
    backend that ran the same shape right does not make it right. Raises Wrong for a result of another shape or dtype,
    and for changed inputs.
    """
    count, tokens = case.operator.groups(case.shape)
    sampled = count == 1 and tokens > MOST_ROWS  # in several groups, rows of a group are not rows of the output
    rows = (_sample(tokens) if sampled else torch.arange(tokens)).to(program.inputs[0].device)
    fresh = build(case, seed=crc32(case.id.encode()), attend=Attend(rows))
    reference = _reference(fresh, program)
    program = replace(program, inputs=fresh.inputs)
    keep = rows if sampled else slice(None)
    shape = program.inputs[0].shape  # of q in scope core, of x else: attention keeps it
    found, right = _results(program, keep, shape), _results(reference, keep, shape)
    if any(not torch.equal(x.double(), own) for x, own in zip(program.inputs, reference.inputs, strict=True)):
        raise Wrong("a call changes its inputs, so that the next does not compute the same")
    for value in found:
        if value.dtype != program.inputs[0].dtype:
            raise Wrong(f"a result is {value.dtype}; right is {program.inputs[0].dtype}")
    # A gradient that is zero on paper (of q and k where there is one token) is judged by the size of the others.
    sizes = [float(true.abs().max()) for true in right]
    least = max(SMALL * max(sizes), torch.finfo(torch.float64).tiny)
    off = [(value.double() - true).abs().max() for value, true in zip(found, right, strict=True)]
    errors = [largest / max(size, least) for largest, size in zip(off, sizes, strict=True)]
    return float(torch.stack(errors).max())  # a NaN among them stays NaN


def _sample(tokens: int) -> Tensor:
    return torch.randperm(tokens, generator=torch.Generator().manual_seed(0))[:SAMPLED_ROWS].sort().values


def _reference(fresh: Program, program: Program) -> Program:
    """The program's own weights, and copies of the fresh inputs, rounded as they are, in float64."""
    inputs = tuple(x.detach().double().requires_grad_(program.training) for x in fresh.inputs)
    module = fresh.module.to(torch.float64)
    own = program.module.state_dict()
    module.load_state_dict({name.removeprefix("_orig_mod."): value.double() for name, value in own.items()})
    return Program(module, inputs, program.training)


def _results(program: Program, keep: slice | Tensor, shape: torch.Size) -> list[Tensor]:
    """What is compared: the output's kept rows, and in training the gradients. An output of another shape is Wrong."""
    output = program.module(*program.inputs) if program.training else program.call()
    if output.shape != shape:
        raise Wrong(f"a result has the shape {tuple(output.shape)}; right is {tuple(shape)}")
    return _gradients(program, output, keep) if program.training else [output[..., keep, :]]


def _gradients(program: Program, output: Tensor, keep: slice | Tensor) -> list[Tensor]:
    """Output at the kept rows, then gradients for a seeded output gradient that is zero elsewhere.

    Of the inputs and the layer's own parameters. Those of a block's norms and MLP are torch's own work: its LayerNorm
    sums a bias gradient in the parameters' dtype, which over 1600 bfloat16 rows was 39 % off.
    """
    kept = output.detach()[..., keep, :]
    drawn = torch.randn(kept.shape, generator=torch.Generator().manual_seed(1)).to(kept.device, kept.dtype)
    gradient = torch.zeros_like(output)
    gradient[..., keep, :] = drawn
    own = [p for name, p in program.module.named_parameters() if not _BESIDE_THE_LAYER.search(name)]
    return [kept, *torch.autograd.grad(output, [*program.inputs, *own], gradient)]
