"""One softmax attention on paper: the sizes of its tensors and what it must cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from vitbench.arithmetic import Number
from vitbench.cost import Cost

Size = tuple[Number, ...]


@dataclass(frozen=True)
class Attention:
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
        biased = self.bias is not None
        return Cost(
            macs={
                "scores": self.pairs * self.heads * self.head_dim,
                "mix": self.pairs * self.heads * self.values,
            },
            score_elements=self.pairs * self.heads,
            useful_score_elements=(self.pairs if self.useful is None else self.useful) * self.heads,
            elementwise=self.pairs * self.heads * (2 if biased else 1),  # softmax, its scale folded in; bias
            moved_elements=sum(map(prod, (self.q, self.k, self.v, self.out, self.bias or (0,)))),
        )
