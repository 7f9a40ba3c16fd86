"""The inner attention on paper: written out as products and softmax, or fused (`backends/naive.py`, `sdpa.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vitbench.arithmetic import Number, ceil_div, smaller
from vitbench.ledger.tape import Tape, Tensor


class Sizes(NamedTuple):
    """q, k, v: (batch, groups, heads, tokens, head_dim) each. shifted: 1 where a mask tells windows' parts apart."""

    batch: Number
    groups: Number
    heads: int
    tokens: Number
    head_dim: int
    shifted: Number = 0

    @property
    def rows(self) -> Number:
        """Tokens of all groups."""
        return self.batch * self.groups * self.tokens

    @property
    def dim(self) -> int:
        return self.heads * self.head_dim

    @property
    def scores(self) -> Number:
        return self.rows * self.heads * self.tokens

    @property
    def mask(self) -> Tensor:
        return Tensor(self.groups * self.tokens**2, "bool")


# Takes sizes and the bias (heads, tokens, tokens), or None. Gives what it leaves held; the last has heads side by side.
Attend = Callable[[Tape, Sizes, Tensor | None], tuple[Tensor, ...]]


def written_out(tape: Tape, sizes: Sizes, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Batched products copy q, k and v where batch, groups and heads of these views cannot be merged."""
    products, stored = tape.precision.products, tape.precision.stored
    features = Tensor(sizes.rows * sizes.dim, products)
    several = smaller(sizes.batch * sizes.groups - 1, 1)
    scaled = tape.run("mul", "pointwise", (features,), features)
    copies = [tape.run("clone", "copy", (features,), features, strided=k, when=several) for k in (False, True)]
    macs, scores = sizes.scores * sizes.head_dim, Tensor(sizes.scores, products)
    tape.run("bmm", "product", (features, features), scores, macs=macs, inner=sizes.head_dim)
    tape.free(scaled)
    tape.free(*copies, when=several)
    if bias is not None:
        scores = _biased(tape, sizes, scores, bias)
    softmax = tape.run("_softmax", "reduction", (scores,), Tensor(sizes.scores, stored))
    tape.free(scores)
    with tape.cast(softmax, products) as weights:
        v = tape.run("clone", "copy", (features,), features, when=several)
        mixed = tape.run("bmm", "product", (weights, v), features, macs=macs, inner=sizes.tokens)
        tape.free(v, when=several)
    tape.free(softmax)
    return mixed, tape.run("clone", "copy", (mixed,), features)


def _biased(tape: Tape, sizes: Sizes, scores: Tensor, bias: Tensor) -> Tensor:
    """Bias added; masked where shifted."""
    added = tape.run("add", "pointwise", (scores, bias), Tensor(sizes.scores, bias.dtype))
    tape.free(scores)
    unseen = tape.run("bitwise_not", "pointwise", (sizes.mask,), sizes.mask, when=sizes.shifted)
    tape.run("masked_fill", "pointwise", (added, unseen), added, when=sizes.shifted)
    tape.free(added, unseen, when=sizes.shifted)
    return added


def fused(tape: Tape, sizes: Sizes, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Bias and mask are merged, and expanded over the batch where windows differ."""
    features, entries = Tensor(sizes.rows * sizes.dim, tape.precision.products), sizes.rows * sizes.heads
    macs, tiles = 2 * sizes.scores * sizes.head_dim, _whole(sizes.tokens, tape.kernels.tile)
    made = features
    if tape.kernels.sums:
        made = Tensor(features.elements + entries, features.dtype)

    def attended(*added: Tensor) -> tuple[Tensor]:
        given = (features, features, features, *added)
        name, apart = "scaled_dot_product_attention", 0 if tape.kernels.sums else 4 * entries
        tape.run(name, "attention", given, made, macs=macs, tiles=tiles, inner=sizes.head_dim, apart=apart)
        tape.held = tape.held + features.bytes - made.bytes
        return (features,)

    if bias is None:
        return attended()
    shifted, expanded = sizes.shifted, sizes.shifted * smaller(sizes.batch - 1, 1)
    unseen = tape.run("bitwise_not", "pointwise", (sizes.mask,), sizes.mask, when=shifted)
    merged = Tensor(bias.elements * sizes.groups, bias.dtype)
    tape.run("masked_fill", "pointwise", (bias, unseen), merged, when=shifted)
    tape.free(unseen, when=shifted)
    each = Tensor(bias.elements * (1 + shifted * (sizes.batch * sizes.groups - 1)), bias.dtype)
    tape.run("clone", "copy", (merged,), each, when=expanded)
    tape.free(merged, when=expanded)
    with tape.cast(each, tape.precision.products) as added:
        found = attended(added)
    tape.free(each, when=shifted)
    return found


def _whole(tokens: Number, tile: int) -> Number:
    """Pairs in whole tiles over pairs."""
    return (ceil_div(tokens, tile) * tile / tokens) ** 2 if tile > 1 else 1


BACKENDS: dict[str, Attend] = {"naive": written_out, "sdpa": fused}
