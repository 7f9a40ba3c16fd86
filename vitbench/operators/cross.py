"""Cross-attention: an image's tokens attend to another set of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention, Size
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import at_least, projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Cross(Operator):
    """Multi-head cross-attention: queries from N tokens, keys and values from a memory of M others.

    2ND^2 + 2MD^2 + 2NMD MACs an image, by term: qkv (N + 2M)D^2, proj ND^2, scores and mix NMD each.
    A decoder reads an encoder's tokens so (DETR), and each of two images the other's (SuperGlue, Sarlin 2020; LoFTR,
    Sun 2021). The memory has the model's width; a block does not normalise it.
    keys: M, tokens of the memory.
    """

    name = "cross"
    paper = "Vaswani et al. 2017, section 3.2.3 (encoder-decoder attention); Carion et al. 2020 (DETR), section 3.2"

    keys: int

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (Attention(shape.batch, 1, shape.heads, shape.tokens, self.keys, shape.head_dim),)

    def inputs(self, shape: Shape) -> tuple[Size, ...]:
        """x, then the memory."""
        return (shape.batch, shape.tokens, shape.dim), (shape.batch, self.keys, shape.dim)

    def unsupported(self, shape: Shape) -> str | None:
        return at_least(1, keys=self.keys)

    def around(self, shape: Shape) -> Cost:
        return projections(shape.batch * shape.tokens, shape.batch * self.keys, shape.dim)
