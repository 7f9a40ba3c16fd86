"""What a case must do, whatever runs it.

Exact counts of multiply-accumulates (1 MAC = 2 FLOPs) and of elements. NOT a prediction of time, and
not what a given program does: padding to a tile, recomputation and copies are the program's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from vitbench.arithmetic import Number

BACKWARD = 2  # a product C = A B has two gradients, dA = dC B^T and dB = A^T dC, each as large as C
NOTHING: Mapping[str, Number] = MappingProxyType({})


class Cost(NamedTuple):
    """Counts for one whole batch.

    macs: MACs by term (qkv, scores, mix, proj, mlp ...).
    constant: those of them, by term, that multiply by what takes no gradient (an image, a fixed projection).
    score_elements: query-key pairs over all heads and groups, as computed.
    useful_score_elements: the pairs among them that the mask allows and that join two real tokens.
    elementwise: output elements of softmaxes, bias additions, norms, activations and residuals; not MACs.
    parameters: trainable weights, independent of the batch.
    moved_elements: the fewest elements that must cross memory: inputs, parameters and outputs, once each.
    """

    macs: Mapping[str, Number] = NOTHING
    constant: Mapping[str, Number] = NOTHING
    score_elements: Number = 0
    useful_score_elements: Number = 0
    elementwise: Number = 0
    parameters: Number = 0
    moved_elements: Number = 0

    @property
    def total_macs(self) -> Number:
        return sum(self.macs.values())

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        """Both, one after the other. moved_elements must be set anew."""
        return total((1, (self, other)))

    def times(self, count: Number) -> Cost:
        """That many, one after the other. moved_elements must be set anew."""
        return total((count, (self,)))

    def training(self) -> Cost:
        """Forward and backward, with gradients of every input (but an image) and parameter, saved activations reused.

        A fused kernel that computes the scores again in its backward does N^2 D more; that is the
        program's choice and is named where counts are compared.
        """
        return Cost(
            {term: (1 + BACKWARD) * macs - self.constant.get(term, 0) for term, macs in self.macs.items()},
            {},
            score_elements=self.score_elements,
            useful_score_elements=self.useful_score_elements,
            elementwise=2 * self.elementwise,
            parameters=self.parameters,
            moved_elements=2 * self.moved_elements,
        )


def total(*groups: tuple[Number, Iterable[Cost]]) -> Cost:
    """The costs of each group, that many times, one after the other.

    moved_elements must be set anew: what one hands on need not move.
    """
    macs: dict[str, Number] = {}
    constant: dict[str, Number] = {}
    scores = useful = elementwise = parameters = 0
    for count, costs in groups:
        for terms, fixed, its_scores, its_useful, its_elementwise, its_parameters, _ in costs:
            for term in terms:
                macs[term] = macs.get(term, 0) + count * terms[term]
            for term in fixed:
                constant[term] = constant.get(term, 0) + count * fixed[term]
            scores = scores + count * its_scores  # += would keep the first array's size
            useful = useful + count * its_useful
            elementwise = elementwise + count * its_elementwise
            parameters = parameters + count * its_parameters
    return Cost(macs, constant, scores, useful, elementwise, parameters)
