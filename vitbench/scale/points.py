"""What one model does at several sizes of its images: on paper for the suite's own models, else counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isqrt

from vitbench.exact.tally import PAIRS
from vitbench.model import models
from vitbench.refusal import Refusal
from vitbench.source import is_builtin, open_source, said

PARTS = ("linear", "pairs", "weights")


@dataclass(frozen=True)
class Point:
    """One call on a batch of square images, inference. image: pixels a side.

    linear, pairs, weights: MACs of weights x data, of data x data, of weights x weights. parameters: how many.
    attentions: queries and keys of each softmax. grid: positions of the first tokens or of the first convolution, of
    one image; None: there is no convolution. shapes: of the parameters by name; empty on paper. uncounted: operators
    that may hold products and have no formula.
    """

    image: int
    linear: int
    pairs: int
    weights: int
    parameters: int
    attentions: tuple[tuple[int, int], ...]
    grid: int | None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        return self.linear + self.pairs + self.weights

    @property
    def keys(self) -> int | None:
        """Of every softmax attention, if all have as many."""
        found = {keys for _, keys in self.attentions}
        return found.pop() if len(found) == 1 else None


class Points:
    """Of one source at one batch, each size once.

    own: pixels a side of the model's own images. patch: of which a size is always a multiple. on_paper: by closed form.
    told: is called with each size before it is counted. refused: sizes, with the model's words.
    """

    def __init__(self, source: str, batch: int, told: Callable[[int], None] = lambda _: None) -> None:
        self.source, self.batch, self.told = source, batch, told
        self.found: dict[int, Point] = {}
        self.refused: dict[int, str] = {}
        self.on_paper = is_builtin(source)
        self.own = models[source].image if self.on_paper else self._own()
        first = self.at(self.own)
        if first is None:
            raise Refusal(f"{source} refuses images of {self.own} x {self.own} pixels: {self.refused[self.own]}")
        self.patch = models[source].model.pixels() if self.on_paper else _step(self.own, first.grid)

    def at(self, image: int) -> Point | None:
        """None where the model refuses that size."""
        if image not in self.found and image not in self.refused:
            if not self.on_paper:
                self.told(image)
            try:
                self.found[image] = self._paper(image) if self.on_paper else self._program(image)
            except Refusal as refusal:
                self.refused[image] = str(refusal)
        return self.found.get(image)

    def _own(self) -> int:
        """Raises Refusal, for a source that cannot be opened too."""
        image = open_source(self.source, None, self.batch).image
        if image is None:
            raise Refusal(f"{self.source} brings its own inputs; expected a model that takes images of several sizes")
        return image[0]

    def _paper(self, image: int) -> Point:
        variant = models[self.source]
        shape = variant.shape(image, self.batch)
        if reason := variant.model.refused(shape, "model"):
            raise Refusal(reason)
        cost = variant.model.cost(shape, "model")
        pairs = sum(cost.macs.get(term, 0) for term in PAIRS)
        attentions = tuple((one.queries, one.keys) for one in variant.model.attentions(shape))
        grid = shape.height * shape.width
        return Point(image, cost.total_macs - pairs, pairs, 0, cost.parameters, attentions, grid)

    def _program(self, image: int) -> Point:
        from vitbench.exact.watch import tally

        opened = open_source(self.source, (image, image), self.batch)
        module = opened.module
        try:
            found = tally(module, opened.inputs)
        except (Exception, SystemExit) as error:  # whatever a stranger's model raises is its answer
            raise Refusal(said(error)) from error
        terms = found.by("term")
        pairs, weights = sum(terms.get(term, 0) for term in PAIRS), terms.get("weights", 0)
        shapes = {name: tuple(one.shape) for name, one in module.named_parameters()}
        parameters = sum(one.numel() for one in module.parameters())
        attentions = tuple(found.attentions)
        linear, unknown = found.macs - pairs - weights, tuple(found.uncounted)
        return Point(image, linear, pairs, weights, parameters, attentions, found.grid, shapes, unknown)


def _step(image: int, grid: int | None) -> int:
    """Pixels of the image a position of the grid, each way; 1 where they are not whole."""
    side = isqrt(grid) if grid else 0
    return image // side if side and side * side == grid and image % side == 0 else 1
