"""`layers/vit.py` on paper."""

from __future__ import annotations

from vitbench.ledger.attend import Attend, Sizes
from vitbench.ledger.block import block, linear, norm, patch_embedding, self_attention
from vitbench.ledger.tape import Tape, Tensor
from vitbench.models.vit import SPECIAL, Vit
from vitbench.shape import Shape


def write(tape: Tape, model: Vit, shape: Shape, attend: Attend) -> None:
    """shape: of square grids, height and batch numbers or arrays; no registers, learned positions."""
    dim, batch, tokens = shape.dim, shape.batch, shape.tokens
    sizes = Sizes(batch, 1, shape.heads, tokens, dim // shape.heads)
    x = _embedded(tape, model, shape)
    with tape.repeated(model.depth):
        result = block(tape, x, dim, int(model.width(shape)), lambda one: self_attention(tape, one, sizes, attend))
        tape.free(x)
    normed = norm(tape, result, dim)
    _classified(tape, model, shape, normed)


def _embedded(tape: Tape, model: Vit, shape: Shape) -> Tensor:
    """Prefix tokens joined, positions added."""
    patches = patch_embedding(tape, shape.batch, shape.height, model.patch, shape.dim)
    prefix = [tape.owned(shape.dim) for _ in range(shape.prefix)]
    table = tape.owned(shape.tokens * shape.dim)
    joined = patches
    if prefix:
        made = Tensor(shape.batch * shape.tokens * shape.dim, tape.precision.stored)
        joined = tape.run("cat", "copy", (*prefix, patches), made)
    x = tape.run("add", "pointwise", (joined, table), Tensor(joined.elements, tape.precision.stored))
    tape.free(patches, *([joined] if prefix else []))
    return x


def _classified(tape: Tape, model: Vit, shape: Shape, x: Tensor) -> None:
    pooled = Tensor(shape.batch * shape.dim, x.dtype)
    if model.pool == "mean":
        tape.run("mean", "reduction", (x,), pooled)
    heads = max(SPECIAL[model.pool], 1)
    logits = [linear(tape, pooled, shape.batch, shape.dim, model.classes) for _ in range(heads)]
    if heads > 1:
        total = tape.run("add", "pointwise", logits, logits[0])
        tape.run("div", "pointwise", (total,), total)
