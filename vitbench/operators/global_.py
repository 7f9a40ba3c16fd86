"""Global multi-head self-attention: every token attends to every token."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.cost import Cost
from vitbench.operator import Groups, Operator, operators
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Global(Operator):
    """Multi-head self-attention over all N tokens, prefix tokens among them.

    4ND^2 + 2N^2 D MACs an image; on a grid 4hwC^2 + 2(hw)^2 C (Liu 2021, equation 1).
    """

    name = "global"
    paper = "Dosovitskiy et al. 2021 (ViT), appendix A, equations 5 to 8; Vaswani et al. 2017, equation 1"

    def groups(self, shape: Shape) -> Groups:
        return Groups(1, shape.tokens)

    def core(self, shape: Shape) -> Cost:
        batch, n, dim = shape.batch, shape.tokens, shape.dim
        pairs = batch * shape.heads * n * n
        return Cost(
            macs={"scores": batch * n * n * dim, "mix": batch * n * n * dim},
            score_elements=pairs,
            useful_score_elements=pairs,
            elementwise=pairs,  # softmax, its scale folded in
            moved_elements=4 * batch * n * dim,  # q, k, v, output
        )

    def held(self, shape: Shape) -> int:
        return 0

    def projections(self, shape: Shape) -> Cost:
        tokens, dim = shape.batch * shape.tokens, shape.dim
        return Cost(
            macs={"qkv": 3 * tokens * dim**2, "proj": tokens * dim**2},
            elementwise=4 * tokens * dim,  # biases
            parameters=4 * dim**2 + 4 * dim,
        )
