"""The non-local block: every position of every frame looks at all others, at half the channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, subsampled, switch
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class NonLocal(Operator):
    """Non-local block: all positions of T frames attend to all, at half the channels, with a residual.

    z = W_z y + x; y mixes g(x) by softmax(theta(x) phi(x)^T), by softmax(x x^T) or by theta(x) phi(x)^T / M, where
    phi(x) and g(x) have M rows. N = THW positions: (1 + M/N) NC^2 + NMC MACs a clip; gaussian 1/2 (1 + M/N) NC^2 +
    3/2 NMC. dot computes all pairs, as the authors' code does, though without a softmax phi^T g could come first.
    It has one head of C / 2 features whatever heads says, and its own residual, so no pre-norm block is put around it.
    The BatchNorm after W_z is left out: in inference it is part of W_z.
    frames: T, one above another in the grid. kind: of pairwise function f (equations 3, 2 and 4); gaussian compares
    the raw C features, unscaled, so that normalised features attend to little but their own position.
    subsample: 1: phi and g take x after a 2x2 max-pool of each frame, M = T (H // 2)(W // 2), which leaves a quarter of
    the pairs (section 3.3). The pool comes before phi and g, as in the authors' code; the text also puts it after them.
    """

    name = "non_local"
    paper = "Wang et al. 2018 (Non-local Neural Networks), section 3, equations 1 to 4 and 6, figure 2"
    scopes = ("layer",)  # its residual is its own, and one kind has no core
    prefixed = False
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"kind": ("embedded", "gaussian", "dot")}

    frames: int = 1
    kind: str = "embedded"
    subsample: int = 0

    def keys(self, shape: Shape) -> Number:
        """M: positions that each position looks at."""
        return subsampled(shape, self.subsample, self.frames)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        if self.kind == "dot":
            return ()
        half = quotient(shape.dim, 2)
        width = shape.dim if self.kind == "gaussian" else half
        return (Attention(shape.batch, 1, 1, shape.tokens, self.keys(shape), width, half, scale=1.0),)

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, frames=self.frames) or switch(subsample=self.subsample):
            return reason
        if shape.height % self.frames:
            return f"height {shape.height} is not divisible by {self.frames} frames"
        if self.keys(shape) < 1:
            return f"a 2x2 max-pool leaves no token of {shape.height // self.frames}x{shape.width}"
        if shape.dim % 2:
            return f"dim {shape.dim} cannot be halved"
        return None

    def around(self, shape: Shape) -> Cost:
        tokens, dim, half = shape.batch * shape.tokens, shape.dim, quotient(shape.dim, 2)
        keys, embedded = shape.batch * self.keys(shape), int(self.kind != "gaussian")
        rows = embedded * tokens + (embedded + 1) * keys  # of theta; of phi and g
        cost = Cost(
            macs={"qkv": rows * dim * half, "proj": tokens * half * dim},
            elementwise=rows * half + 2 * tokens * dim + self.subsample * keys * dim,  # biases, residual; pooling
            parameters=(2 * embedded + 1) * (dim + 1) * half + (half + 1) * dim,
        )
        return cost + self._dot(shape) if self.kind == "dot" else cost

    def _dot(self, shape: Shape) -> Cost:
        """theta phi^T g, theta divided by M beforehand."""
        pairs, half = shape.batch * shape.tokens * self.keys(shape), quotient(shape.dim, 2)
        return Cost(
            macs={"scores": pairs * half, "mix": pairs * half},
            score_elements=pairs,
            useful_score_elements=pairs,
            elementwise=shape.batch * shape.tokens * half,
        )
