"""Global motion aggregation: motion is gathered from wherever the image looks alike."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention, Size
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_attention
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Gma(Operator):
    """Global motion aggregation: context features give queries and keys, motion features the values.

    Takes context x and motion y, both (B, N, D) as in the paper (D = 128); gives
    y + alpha softmax(W_q x (W_k x)^T / sqrt(d)) W_v y. 3ND^2 + 2N^2 D MACs an image, no biases, no output projection.
    The paper has one head. H heads here share D; in the authors' code each is D wide and a projection follows.
    This is one aggregation with its scores; the paper's network reuses the softmax in all its iterations.
    It has its own residual, so no pre-norm block is put around it.
    """

    name = "gma"
    paper = "Jiang et al. 2021 (GMA), section 3.2, equations 1 to 3"
    scopes = ("core", "layer")
    prefixed = False

    def inputs(self, shape: Shape) -> tuple[Size, ...]:
        return ((shape.batch, shape.tokens, shape.dim),) * 2

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return (self_attention(shape),)

    def around(self, shape: Shape) -> Cost:
        tokens, dim = shape.batch * shape.tokens, shape.dim
        return Cost(
            macs={"qkv": 3 * tokens * dim**2},
            elementwise=2 * tokens * dim,  # alpha, residual
            parameters=3 * dim**2 + 1,
        )
