"""`layers/swin.py` on paper."""

from __future__ import annotations

from vitbench.arithmetic import Number, smaller
from vitbench.ledger.attend import Attend, Sizes
from vitbench.ledger.block import block, linear, norm, patch_embedding, self_attention
from vitbench.ledger.tape import Tape, Tensor
from vitbench.models.swin import PATCH, Swin
from vitbench.operator import MLP_RATIO
from vitbench.shape import Shape
from vitbench.windows import Axis, axis


def write(tape: Tape, model: Swin, shape: Shape, attend: Attend) -> None:
    """shape: of square grids, height and batch numbers or arrays; sides are halved without a rest, down to 2 or more.

    Blocks of a stage are even in number, as in all variants; the last of them, which is shifted, is the peak.
    """
    patches = patch_embedding(tape, shape.batch, shape.height, PATCH, shape.dim)
    first = x = norm(tape, patches, shape.dim, dense=False)
    tape.free(patches)
    for n, (here, depth) in enumerate(zip(model.shapes(shape), model.depths(), strict=True)):
        before, entry = x, _merged(tape, x, here) if n else x
        plain, shifted = (axis(here.height, model.window, shift) for shift in (0, model.window // 2))
        with tape.repeated(depth // 2):
            between = _block(tape, entry, here, plain, attend)
        with tape.repeated(depth // 2):
            x = _block(tape, between, here, shifted, attend)
        tape.free(between, *([entry, before] if n else []))  # the first tokens stay to the end
    normed = norm(tape, x, here.dim)
    tape.free(first, x)
    pooled = tape.run("mean", "reduction", (normed,), Tensor(here.batch * here.dim, normed.dtype))
    tape.free(normed)
    linear(tape, pooled, here.batch, here.dim, model.classes)


def _block(tape: Tape, x: Tensor, here: Shape, cut: Axis, attend: Attend) -> Tensor:
    return block(tape, x, here.dim, MLP_RATIO * here.dim, lambda one: _window_attention(tape, one, here, cut, attend))


def _merged(tape: Tape, x: Tensor, into: Shape) -> Tensor:
    """2 x 2 tokens side by side, normed, and reduced to the features of the next stage."""
    together = tape.run("clone", "copy", (x,), x)
    normed = norm(tape, together, 2 * into.dim)
    made = linear(tape, normed, into.batch * into.tokens, 2 * into.dim, into.dim, bias=False)
    tape.free(together, normed)
    return made


def _window_attention(tape: Tape, x: Tensor, here: Shape, cut: Axis, attend: Attend) -> Tensor:
    """`layers/window.py`, each side of the grid cut alike."""
    several, padded = smaller(cut.windows - 1, 1), smaller(cut.padded - cut.side, 1)
    shifted = smaller(cut.shift, 1)
    windows = _cut(tape, x, Tensor(here.batch * cut.padded**2 * here.dim, x.dtype), several, padded, shifted)
    bias = _bias(tape, here.heads, cut.window)
    sizes = Sizes(here.batch, cut.windows**2, here.heads, cut.window**2, here.dim // here.heads, shifted)
    tape.keep(sizes.mask.bytes * shifted)
    mixed = self_attention(tape, windows, sizes, attend, bias)
    tape.free(bias)
    tape.free(windows, when=several)
    return _joined(tape, mixed, Tensor(x.elements, mixed.dtype), several, padded, shifted)


def _cut(tape: Tape, x: Tensor, whole: Tensor, several: Number, padded: Number, shifted: Number) -> Tensor:
    """Padded, rolled, cut into windows, each where there is a need; in one window nothing moves."""
    tape.run("constant_pad_nd", "copy", (x,), whole, when=padded)
    tape.run("roll", "copy", (whole,), whole, when=shifted)
    tape.free(whole, when=padded * shifted)
    tape.run("clone", "copy", (whole,), whole, when=several)
    tape.free(whole, when=padded + shifted - padded * shifted)
    return whole


def _joined(tape: Tape, whole: Tensor, x: Tensor, several: Number, padded: Number, shifted: Number) -> Tensor:
    """The inverse."""
    tape.run("clone", "copy", (whole,), whole, when=several)
    tape.run("roll", "copy", (whole,), whole, when=shifted)
    tape.free(whole, when=shifted)
    tape.run("clone", "copy", (x,), x, when=padded)
    tape.free(whole, when=padded)
    tape.free(whole, when=several)
    return x


def _bias(tape: Tape, heads: int, window: Number) -> Tensor:
    """Of the table of offsets, a value for each pair of a window."""
    pairs = window**4
    numbers = Tensor(pairs, "int64")
    tape.keep(numbers.bytes)
    bias = Tensor(heads * pairs, tape.precision.stored)
    rows = tape.run("index", "copy", (tape.owned((2 * window - 1) ** 2 * heads), numbers), bias)
    tape.run("clone", "copy", (rows,), bias)
    tape.free(rows)
    return bias
