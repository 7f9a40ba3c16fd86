"""What one call of a module did, exactly: every product, by term, operator and module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PAIRS = ("scores", "mix", "pairs")  # terms of products of data with data
UNKNOWN = "other gradients"  # of a backward whose products in the forward are not known
OTHER = ("weights", UNKNOWN)  # terms that are neither of data with data nor of weights with data


@dataclass
class Product:
    """Multiply-accumulates of one operator in one call.

    term: linear, conv (weights x data); scores, mix (of a softmax attention), pairs (data x data otherwise); weights
    (weights x weights, which no input touches); UNKNOWN. operator: torch's. function: of torch's, that the program
    called. module, kind: path and class of the module that called it. elements: of what it gave.
    """

    macs: int
    term: str
    operator: str
    function: str
    module: str
    kind: str
    place: str
    elements: int


@dataclass
class Tally:
    """What one call did. elementwise: output elements of arithmetic that is no product, by operator; in training twice
    those of the forward, as in `Cost.training`.

    attentions: queries and keys of each softmax of scores. uncounted: operators that may hold products and have no
    formula, with the module that called them first. notes: what was taken on trust, in sentences.
    peak_bytes: held at once above inputs, weights and (in training) gradients of weights.
    """

    products: list[Product] = field(default_factory=list)
    elementwise: Counter[str] = field(default_factory=Counter)
    attentions: list[tuple[int, int]] = field(default_factory=list)
    uncounted: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    peak_bytes: int = 0
    grid: int | None = None  # positions that the first convolution of data gives for one image

    @property
    def macs(self) -> int:
        return sum(product.macs for product in self.products)

    @property
    def score_elements(self) -> int:
        return sum(one.elements for one in self.products if one.term == "scores" and one.place == "forward")

    def by(self, key: str) -> dict[str, int]:
        """MACs by one of the fields of a product, largest first."""
        found: Counter[str] = Counter()
        for product in self.products:
            found[getattr(product, key)] += product.macs
        return dict(found.most_common())
