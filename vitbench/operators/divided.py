"""TimeSformer's divided space-time attention: over time at one place, then over space within one frame."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Divided(Operator):
    """Divided space-time attention: a token attends to its place in all frames, then to its whole frame.

    9ND^2 + 2N (F + N / F) D MACs a clip: the projections of both attentions and temporal_fc, one more D x D product
    after the temporal attention. It is in the authors' code and in their published parameters, not in their equations.
    frames: F; they stand one above another in the grid. Without a CLS token, which the paper shows to all frames.
    The layer has the norm before the spatial attention, a block the one before the temporal attention; the layer gives
    what both attentions add to the residual stream.
    """

    name = "divided"
    paper = "Bertasius et al. 2021 (TimeSformer), section 3, Divided Space-Time Attention"
    prefixed = False

    frames: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        places = quotient(shape.height * shape.width, self.frames)
        return (
            Attention(shape.batch, places, shape.heads, self.frames, self.frames, shape.head_dim),
            Attention(shape.batch, self.frames, shape.heads, places, places, shape.head_dim),
        )

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, frames=self.frames):
            return reason
        if shape.height % self.frames:
            return f"height {shape.height} is not divisible by {self.frames} frames, one above another"
        return None

    def around(self, shape: Shape) -> Cost:
        tokens, dim = shape.batch * shape.tokens, shape.dim
        between = Cost(
            macs={"temporal_fc": tokens * dim**2},
            elementwise=4 * tokens * dim,  # its bias, the residual, the norm, the sum of both
            parameters=dim**2 + dim + 2 * dim,
        )
        return self_projections(shape) + between + self_projections(shape)
