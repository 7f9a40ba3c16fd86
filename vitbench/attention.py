"""One softmax attention on paper: the sizes of its tensors and what it must cost; and equal blocks of such."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from vitbench.arithmetic import Number
from vitbench.cost import Cost, total

Size = tuple[Number, ...]


class Attention(NamedTuple):
    """softmax(scale q k^T + bias, under mask) v inside each group: one call of Backend.attend.

    q: (batch, groups, heads, queries, head_dim); k: (..., keys, head_dim); v: (..., keys, value_dim).
    groups: of one image; 1 where attention is global. value_dim: None means head_dim.
    bias, mask: sizes as stored, each broadcastable to (batch, groups, heads, queries, keys); None: there is none.
    causal: a query sees the keys up to its own place. scale: None means head_dim ** -0.5.
    useful: pairs of one head, over all groups of the batch, that may attend and join two real tokens; None: all.
    """

    batch: Number
    groups: Number
    heads: Number
    queries: Number
    keys: Number
    head_dim: Number
    value_dim: Number | None = None
    bias: Size | None = None
    mask: Size | None = None
    causal: bool = False
    scale: float | None = None
    useful: Number | None = None

    @property
    def q(self) -> Size:
        return (self.batch, self.groups, self.heads, self.queries, self.head_dim)

    @property
    def k(self) -> Size:
        return (self.batch, self.groups, self.heads, self.keys, self.head_dim)

    @property
    def v(self) -> Size:
        return (self.batch, self.groups, self.heads, self.keys, self.values)

    @property
    def out(self) -> Size:
        return (self.batch, self.groups, self.heads, self.queries, self.values)

    @property
    def values(self) -> Number:
        """Features of a head of v."""
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def pairs(self) -> Number:
        """Pairs of one head, over all groups of the batch, as computed."""
        return self.batch * self.groups * self.queries * self.keys

    def cost(self) -> Cost:
        """From given q, k, v and bias to the mixed values."""
        batch, groups, heads, queries, keys, head_dim, value_dim, bias, _, _, _, useful = self
        values = head_dim if value_dim is None else value_dim
        matrices = batch * groups * heads
        computed = matrices * queries * keys
        return Cost(
            {"scores": computed * head_dim, "mix": computed * values},
            score_elements=computed,
            useful_score_elements=computed if useful is None else useful * heads,
            elementwise=computed if bias is None else 2 * computed,  # softmax, its scale folded in; bias
            moved_elements=matrices * (queries + keys) * (head_dim + values) + (0 if bias is None else prod(bias)),
        )


class Stage(NamedTuple):
    """Equal blocks, one after the other.

    attentions: of one block, in the order in which they are handed over. around: all else of it, and its parameters.
    depth: how many blocks.
    """

    attentions: tuple[Attention, ...]
    around: tuple[Cost, ...]
    depth: int = 1

    def costs(self) -> tuple[int, list[Cost]]:
        """How many blocks, and all that one does."""
        return self.depth, [*map(Attention.cost, self.attentions), *self.around]

    def cost(self) -> Cost:
        return total(self.costs())
