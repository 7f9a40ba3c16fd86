"""Linear attention: a kernel in place of the softmax, so that keys and values can be summed up first."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import self_projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class Linear(Operator):
    """Linear attention: phi(q) (phi(K)^T V) over phi(q) sum phi(k), with phi(x) = elu(x) + 1.

    4ND^2 + 2NdD + ND MACs an image. kv: phi(K)^T V, NdD. q_kv: its product with phi(q), NdD. normaliser: phi(q) sum
    phi(k), Nd a head. No score is formed, and nothing grows with N^2. LoFTR (Sun 2021, section 3.2) attends so.
    """

    name = "linear"
    paper = "Katharopoulos et al. 2020 (Transformers are RNNs), equations 4 to 7"
    scopes = ("layer", "block")

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return ()

    def around(self, shape: Shape) -> Cost:
        features = shape.batch * shape.tokens * shape.dim
        products = features * shape.head_dim
        kernel = Cost(
            macs={"kv": products, "q_kv": products, "normaliser": features},
            elementwise=3 * features,  # phi(q), phi(k), quotients
        )
        return self_projections(shape) + kernel
