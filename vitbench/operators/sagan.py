"""SAGAN's self-attention over feature maps, with narrow queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, subsampled, switch
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Sagan(Operator):
    """SAGAN's self-attention: queries, keys and values of C / 8 features, added to the input by a learned gamma.

    y = gamma v(softmax(g(x) f(x)^T) h(x)) + x, scores unscaled. With values of C / r features and M keys,
    (1/4 + 2/r) NC^2 + (1/8 + 1/r) NMC MACs an image. All projections are 1x1 convolutions without bias; their spectral
    norms, constants in inference, are left out. It has one head whatever heads says, and its own residual, so no
    pre-norm block is put around it.
    values: r. The paper takes 8; the authors' code and BigGAN take 2.
    subsample: 1: a 2x2 max-pool follows f and h, as in the authors' code (sagan-values2-subsample1); not in the paper.
    Which of four features is the largest may differ in half precision from float64, and then so do the gradients.
    """

    name = "sagan"
    paper = "Zhang et al. 2019 (SAGAN), section 3, equations 1 to 3"
    scopes = ("core", "layer")
    prefixed = False

    values: int = 8
    subsample: int = 0

    def keys(self, shape: Shape) -> Number:
        """M: positions that each position attends to."""
        return subsampled(shape, self.subsample)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        narrow, value = quotient(shape.dim, 8), quotient(shape.dim, self.values)
        return (Attention(shape.batch, 1, 1, shape.tokens, self.keys(shape), narrow, value, scale=1.0),)

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, values=self.values) or switch(subsample=self.subsample):
            return reason
        for parts in (8, self.values):
            if shape.dim % parts:
                return f"dim {shape.dim} is not divisible by {parts}"
        if self.keys(shape) < 1:
            return f"a 2x2 max-pool leaves no token of {shape.height}x{shape.width}"
        return None

    def around(self, shape: Shape) -> Cost:
        tokens, dim = shape.batch * shape.tokens, shape.dim
        narrow, value = quotient(dim, 8), quotient(dim, self.values)
        pooled = shape.batch * self.keys(shape) * (narrow + value) if self.subsample else 0
        return Cost(
            macs={"qkv": tokens * dim * (2 * narrow + value), "proj": tokens * value * dim},
            elementwise=2 * tokens * dim + pooled,  # gamma, residual; pooling
            parameters=2 * dim * (narrow + value) + 1,
        )
