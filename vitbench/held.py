"""Bytes that one pre-norm block (`layer.Block`) holds on paper: in inference, for its backward, and during it.

From the lifetimes of the tensors of its program as written, in float32, its attention fused: that keeps q, k, v, the
result and one sum a query, and no scores. Space that an operator takes and gives back within itself is NOT in it.
Exact but for heads of a single feature, some of which torch joins without a copy.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from vitbench.operator import Operator
from vitbench.shape import Shape

FLOAT = 4  # bytes


class Held(NamedTuple):
    """Bytes of the block's tensors, for the whole batch.

    x: the block's input, as the result of either norm and either residual. statistics: mean and deviation of a norm's
    tokens. hidden: of the MLP, as it is before or after GELU. copy: x cut into windows, 0 where these are views of it.
    features: q, k, v or the result, each; with padding; the result's heads lie side by side. sums: of each query's
    softmax. bias: as it is added to the scores. mask: bool. merged: both as one. expanded: that,
    once an image; 0 for one image. gathered: rows of the bias's table, 0 where the bias is a view of them.
    """

    x: int
    statistics: int
    hidden: int
    copy: int
    features: int
    sums: int
    bias: int
    mask: int
    merged: int
    expanded: int
    gathered: int

    @classmethod
    def of(cls, operator: Operator, shape: Shape, hidden: int) -> Held:
        """operator: one plain self-attention. hidden: width of the MLP's hidden layer."""
        (attention,), tokens = operator.attentions(shape), FLOAT * shape.batch * shape.tokens
        batch, groups, heads, queries, _, width = attention[:6]
        sums = FLOAT * batch * groups * heads * queries
        bias = FLOAT * prod(attention.bias) if attention.bias else 0
        mask = prod(attention.mask) if attention.mask else 0
        merged = FLOAT * heads * mask
        return cls(
            x=tokens * shape.dim,
            statistics=2 * tokens,
            hidden=tokens * hidden,
            copy=FLOAT * (operator.held(shape) or 0),
            features=sums * width,
            sums=sums,
            bias=bias,
            mask=mask,
            merged=merged,
            expanded=batch * merged if batch > 1 else 0,
            gathered=bias if heads > 1 else 0,
        )

    @property
    def added(self) -> int:
        """What the attention is given to add to its scores."""
        return self.expanded or self.merged or self.bias

    def inference(self) -> int:
        """At the peak, its input included."""
        masked = self.expanded or self.merged
        attending = max(
            self.mask + self.merged,  # merging: the mask inverted, and both merged
            self.merged + self.expanded,  # expanding
            masked + self.features + self.sums,  # attending: result and sums
            2 * self.features,  # projecting: result, its projection
        )
        attention = self.bias + max(self.gathered, 3 * self.features + attending)  # q, k, v
        layer = 2 * self.x + self.copy + attention  # input, norm1's result
        return max(layer, 3 * self.x + 2 * self.hidden)  # input, residual, norm2's; before and after GELU

    def saved(self) -> int:
        """For the backward."""
        attention = 4 * self.features + self.sums + self.mask + self.added  # q, k, v, result
        mlp = self.x + 2 * self.hidden  # norm2's result; before and after GELU
        norms = 2 * (self.x + self.statistics)  # input and residual
        return norms + self.features + attention + mlp  # norm1's result, or its copy

    def backward(self) -> int:
        """Gradients at the peak of its backward, that of its result among them, above all saved up to its end."""
        later = 2 * self.x + self.statistics + 2 * self.hidden  # saved after the result, and gone
        return self.x + max(
            self.hidden,  # of what GELU gave, then of what it took
            4 * self.features + self.added - later,  # of result, q, k, v and what was added
            self.merged + self.bias - self.features - self.sums - later,  # of mask and bias; the result is gone too
        )
