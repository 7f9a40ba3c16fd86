"""What the programs on paper have in common: linear layers, norms, one pre-norm block (`layer.Block`)."""

from __future__ import annotations

from collections.abc import Callable

from vitbench.arithmetic import Number
from vitbench.ledger.attend import Attend, Sizes
from vitbench.ledger.tape import Tape, Tensor
from vitbench.model import CHANNELS

STATISTICS = 8  # bytes a token of a norm: mean and deviation


def linear(tape: Tape, x: Tensor, rows: Number, width: int, into: int, *, bias: bool = True) -> Tensor:
    """(rows, width) -> (rows, into)."""
    added, matrix = [tape.weight(into)] if bias else [], tape.weight(width * into)
    with tape.cast(x, tape.precision.products) as taken:
        made, name = Tensor(rows * into, taken.dtype), "addmm" if bias else "mm"
        given = (*added, taken, matrix)
        return tape.run(name, "product", given, made, macs=rows * width * into, inner=width)


def norm(tape: Tape, x: Tensor, dim: int, *, dense: bool = True) -> Tensor:
    """Over dim features. dense: x lies in memory in its order; else its kernel copies it first."""
    with tape.cast(x, tape.precision.stored) as taken:
        if not dense:
            tape.free(tape.run("contiguous", "copy", (taken,), taken, strided=True))
        given = (taken, tape.owned(dim), tape.owned(dim))
        apart = STATISTICS * x.elements // dim
        return tape.run("native_layer_norm", "reduction", given, Tensor(x.elements, taken.dtype), apart=apart)


def patch_embedding(tape: Tape, batch: Number, side: Number, patch: int, dim: int) -> Tensor:
    """side: of the grid, in tokens."""
    images = Tensor(batch * CHANNELS * (side * patch) ** 2, tape.precision.stored)
    width, tokens = CHANNELS * patch**2, batch * side**2
    bias, matrix = tape.weight(dim), tape.weight(width * dim)
    with tape.cast(images, tape.precision.products) as taken:
        made = Tensor(tokens * dim, taken.dtype)
        macs = tokens * width * dim
        return tape.run("convolution", "convolution", (taken, matrix, bias), made, macs=macs, inner=width)


def self_attention(tape: Tape, x: Tensor, sizes: Sizes, attend: Attend, bias: Tensor | None = None) -> Tensor:
    """`layer.SelfAttention.attend_groups`."""
    qkv = linear(tape, x, sizes.rows, sizes.dim, 3 * sizes.dim)
    held = attend(tape, sizes, bias)
    made = linear(tape, held[-1], sizes.rows, sizes.dim, sizes.dim)
    tape.free(qkv, *held)
    return made


def block(tape: Tape, x: Tensor, dim: int, hidden: int, attention: Callable[[Tensor], Tensor]) -> Tensor:
    """hidden: width of the MLP. x stays held."""
    normed = norm(tape, x, dim)
    mixed = attention(normed)
    tape.free(normed)
    between = _added(tape, x, mixed)
    rows = x.elements // dim
    normed = norm(tape, between, dim)
    wide = linear(tape, normed, rows, dim, hidden)
    active = tape.run("gelu", "pointwise", (wide,), wide)
    tape.free(wide)
    narrow = linear(tape, active, rows, hidden, dim)
    tape.free(active, normed)
    result = _added(tape, between, narrow)
    tape.free(between)
    return result


def _added(tape: Tape, x: Tensor, y: Tensor) -> Tensor:
    """x + y, and y is gone."""
    made = tape.run("add", "pointwise", (x, y), x)
    tape.free(y)
    return made
