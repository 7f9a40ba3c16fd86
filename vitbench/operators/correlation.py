"""RAFT's correlation volume: the scores of attention between two images, and nothing of the rest."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number
from vitbench.attention import Attention, Size
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Correlation(Operator):
    """RAFT's all-pairs correlation volume of two feature maps, and its pyramid of average pools.

    Takes two maps (B, N, D). Gives level l = 0, 1, ... as (B, N, (height // 2^l)(width // 2^l)): all dot products,
    divided by sqrt(D) as in the authors' code, then pooled over the second image by 2^l. N^2 D MACs a pair of images,
    no softmax, no parameters; heads are not read. Memory, too, is quadratic in the pixels: the volume is the result.
    levels: of the pyramid.
    """

    name = "correlation"
    paper = "Teed and Deng 2020 (RAFT), section 3.2, equation 1"
    scopes = ("layer",)
    prefixed = False

    levels: int = 4

    def inputs(self, shape: Shape) -> tuple[Size, ...]:
        return ((shape.batch, shape.tokens, shape.dim),) * 2

    def outputs(self, shape: Shape) -> tuple[Size, ...]:
        return tuple((shape.batch, shape.tokens, pixels) for pixels in self.pixels(shape))

    def pixels(self, shape: Shape) -> tuple[Number, ...]:
        """Of the second image, by level."""
        return tuple((shape.height // 2**level) * (shape.width // 2**level) for level in range(self.levels))

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return ()

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, levels=self.levels):
            return reason
        side = min(shape.height, shape.width)
        if side.bit_length() < self.levels:  # each level halves it
            return f"{self.levels} levels need sides of at least 2^{self.levels - 1} tokens, not {side}"
        return None

    def around(self, shape: Shape) -> Cost:
        tokens, pixels = shape.batch * shape.tokens, self.pixels(shape)
        pairs = tokens * shape.tokens
        return Cost(
            macs={"scores": pairs * shape.dim},
            score_elements=pairs,
            useful_score_elements=pairs,
            elementwise=tokens * (shape.dim + sum(pixels[1:])),  # 1 / sqrt(D) on one of the maps; pooling
        )
