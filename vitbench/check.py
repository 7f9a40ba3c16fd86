"""Is the result right? A case against float64, before any time is given for it.

The reference is the same module with the same weights in float64, attending by the definition. Where the score matrix
would be large, only some query rows are computed, drawn evenly with a fixed seed, and only they are compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from zlib import crc32

import torch
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.program import Program, build, outputs_of

# Largest error over the largest magnitude of the reference. Rounding of inputs and weights to the dtype is in it.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 5e-2}
MOST_ROWS = 1024  # queries of a single group up to which all are checked
SAMPLED_ROWS = 64
NOTHING = 1e-12  # of the largest: what float64 leaves of a gradient that is 0 on paper
SMALL = 1e-2  # of the largest magnitude of all results: what is smaller is not judged by its own size

_MLP = re.compile(r"\bmlp\.")


@dataclass(frozen=True)
class Attend:
    """softmax(scale q k^T + bias, under mask) v by the definition, for the query rows given; zeros in the others.

    rows: None means all.
    """

    rows: Tensor | None = None

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        bias: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        rows = torch.arange(q.shape[-2], device=q.device) if self.rows is None else self.rows
        scores = torch.einsum("bghnd,bghmd->bghnm", q[..., rows, :], k)
        scores = scores / q.shape[-1] ** 0.5 if scale is None else scores * scale
        if bias is not None:
            scores = scores + bias.expand(*bias.shape[:3], q.shape[-2], -1)[..., rows, :]
        if mask is not None:
            mask = mask.expand(*mask.shape[:3], q.shape[-2], -1)[..., rows, :]
            scores = scores.masked_fill(~mask, float("-inf"))
        if causal:
            later = torch.arange(k.shape[-2], device=q.device) > rows[:, None]
            scores = scores.masked_fill(later, float("-inf"))
        mixed = torch.einsum("bghnm,bghmd->bghnd", scores.softmax(-1), v)
        return q.new_zeros(*q.shape[:-1], v.shape[-1]).index_copy(-2, rows, mixed)


class Wrong(Exception):
    """A result that is no attention of its inputs at all, in one sentence."""


def error(case: Case, program: Program) -> float:
    """Largest relative error of output, and in training of every gradient; NaN or infinity where the case has it.

    program: the case's own, as it will be timed, but on inputs drawn for this case alone: memory left behind by another
    backend that ran the same shape right does not make it right. Raises Wrong for a result of another shape or dtype,
    and for changed inputs.
    """
    rows = _rows(case, program.inputs[0].device)
    fresh = build(case, seed=crc32(case.id.encode()), attend=Attend(rows))
    reference = _reference(fresh, program)
    program = replace(program, inputs=fresh.inputs)
    keep = slice(None) if rows is None else rows
    right_outputs, outputs = _outputs(reference), _outputs(program)
    for value, true in zip(outputs, right_outputs, strict=True):
        if value.shape != true.shape:
            raise Wrong(f"a result has the shape {tuple(value.shape)}; right is {tuple(true.shape)}")
    right, found = _results(reference, right_outputs, keep), _results(program, outputs, keep)
    if any(not torch.equal(x.double(), own) for x, own in zip(program.inputs, reference.inputs, strict=True)):
        raise Wrong("a call changes its inputs, so that the next does not compute the same")
    for value in found:
        if value.dtype != program.inputs[0].dtype:
            raise Wrong(f"a result is {value.dtype}; right is {program.inputs[0].dtype}")
    # A gradient that happens to cancel (of a temperature: a sum over all tokens) is judged by its size for another
    # output gradient. Those of parameters, sums over all tokens, are far larger than the outputs and stand apart.
    again = _results(reference, _outputs(reference), keep, seed=2) if program.training else right
    sizes = [float(max(true.abs().max(), other.abs().max())) for true, other in zip(right, again, strict=True)]
    beside = len(outputs) + sum(x.requires_grad for x in program.inputs)
    off = [(value.double() - true).abs().max() for value, true in zip(found, right, strict=True)]
    errors = [*_relative(off[:beside], sizes[:beside]), *_relative(off[beside:], sizes[beside:])]
    return float(torch.stack(errors).max())  # a NaN among them stays NaN


def _relative(off: list[Tensor], sizes: list[float]) -> list[Tensor]:
    """Errors over the sizes of what they are errors of.

    None of these is taken as less than SMALL of the largest, and one that is 0 on paper (gradients of q and k where
    there is one key), as the largest.
    """
    most = max([*sizes, torch.finfo(torch.float64).tiny])
    judged = [max(size, SMALL * most) if size > NOTHING * most else most for size in sizes]
    return [largest / size for largest, size in zip(off, judged, strict=True)]


def _rows(case: Case, device: torch.device) -> Tensor | None:
    """The queries to be compared; None: all of them.

    Some only where rows of the one attention are rows of the result: with several groups or attentions they are not.
    """
    tokens = case.shape.tokens
    one = len(case.attentions) == 1 and case.scope != "model"
    if not one or tokens <= MOST_ROWS or (case.attentions[0].groups, case.attentions[0].queries) != (1, tokens):
        return None
    return torch.randperm(tokens, generator=torch.Generator().manual_seed(0))[:SAMPLED_ROWS].sort().values.to(device)


def _reference(fresh: Program, program: Program) -> Program:
    """The program's own weights, and copies of the fresh inputs, rounded as they are, in float64."""
    inputs = tuple(x.detach().double().requires_grad_(x.requires_grad) for x in fresh.inputs)
    module = fresh.module.to(torch.float64)
    own = program.module.state_dict()
    module.load_state_dict({name.removeprefix("_orig_mod."): value.double() for name, value in own.items()})
    return Program(module, inputs, program.training)


def _outputs(program: Program) -> tuple[Tensor, ...]:
    return outputs_of(program.module(*program.inputs) if program.training else program.call())


def _results(program: Program, outputs: tuple[Tensor, ...], keep: slice | Tensor, seed: int = 1) -> list[Tensor]:
    """What is compared: the kept rows of the outputs, and in training the gradients."""
    kept = [output.detach()[..., keep, :] for output in outputs]
    return [*kept, *_gradients(program, outputs, keep, seed)] if program.training else kept


def _gradients(program: Program, outputs: tuple[Tensor, ...], keep: slice | Tensor, seed: int) -> list[Tensor]:
    """For an output gradient of seeded noise and the output itself at the kept rows, and zero beside them.

    The noise alone may cancel in the gradient of a gate, the output does not.

    Of the inputs and the layer's own parameters. Those of norms and of a block's MLP are torch's own work: its
    LayerNorm sums a bias gradient in the parameters' dtype, which over 1600 bfloat16 rows was 39 % off.
    """
    norms = [module for module in program.module.modules() if isinstance(module, (nn.LayerNorm, nn.BatchNorm2d))]
    beside = {id(parameter) for norm in norms for parameter in norm.parameters()}
    drawn, gradients = torch.Generator().manual_seed(seed), []
    for output in outputs:
        gradient = torch.zeros_like(output)
        kept = gradient[..., keep, :].shape
        noise = torch.randn(kept, generator=drawn).to(output.device, output.dtype)
        gradient[..., keep, :] = noise + output.detach()[..., keep, :]
        gradients.append(gradient)
    named = program.module.named_parameters()
    own = [p for name, p in named if id(p) not in beside and not _MLP.search(name)]
    leaves = [leaf for leaf in (*program.inputs, *own) if leaf.requires_grad]
    return [gradient.detach() for gradient in torch.autograd.grad(outputs, leaves, gradients)]
