"""The contract of a whole model on paper: an operator from images to logits, told stage by stage, and its variants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from vitbench.arithmetic import Number
from vitbench.attention import Attention, Size, Stage
from vitbench.cost import Cost, total
from vitbench.operator import Operator
from vitbench.registry import Registry
from vitbench.shape import Shape, grid_of

CHANNELS = 3  # of an image


class Model(Operator):
    """Takes images (B, 3, height * patch, width * patch), gives logits (B, classes).

    The shape is that of its first tokens: grid, prefix, dim and heads; later stages follow from it.
    """

    scopes = ("model",)
    classes: int

    @abstractmethod
    def pixels(self) -> int:
        """Side of a patch: pixels of the image a token of the shape's grid, each way."""

    @abstractmethod
    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        """All that it does, in order."""

    def peak_bytes(self, shape: Shape, mode: str) -> int | None:
        """Of activations held at once, for the whole batch, in float32 and with fused attention (`held`).

        Above inputs and parameters; in training, also above the parameters' gradients. mode: inference or training.
        A moment that is never the highest has no term. None: not known.
        """
        return None

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        return tuple(one for stage in self.stages(shape).values() for one in stage.attentions * stage.depth)

    def around(self, shape: Shape) -> Cost:
        return total(*((stage.depth, stage.around) for stage in self.stages(shape).values()))

    def inputs(self, shape: Shape) -> tuple[Size, ...]:
        return ((shape.batch, CHANNELS, shape.height * self.pixels(), shape.width * self.pixels()),)

    def outputs(self, shape: Shape) -> tuple[Size, ...]:
        return ((shape.batch, self.classes),)


@dataclass(frozen=True)
class Variant:
    """A model by its name in the field.

    image: pixels a side that it was published with. source: paper and table.
    """

    name: str
    model: Model
    dim: int
    heads: int
    prefix: int
    image: int
    source: str

    def shape(self, image: int | tuple[int, int] | None = None, batch: int = 1) -> Shape:
        """image: pixels a side, or of height and width; None means those that it was published with.

        Raises Refusal for a side that patches do not divide.
        """
        image = self.image if image is None else image
        sides = (image, image) if isinstance(image, int) else image
        height, width = (grid_of(side, self.model.pixels()) for side in sides)
        return Shape(batch, height, width, self.dim, self.heads, self.prefix)


def patch_embedding(shape: Shape, patch: int) -> Cost:
    """A convolution of patch x patch pixels with as large a step (Dosovitskiy 2021, equation 1). An image has no
    gradient.
    """
    tokens, width = shape.batch * shape.height * shape.width, CHANNELS * patch**2
    macs = {"patch_embed": tokens * width * shape.dim}
    return Cost(macs=macs, constant=macs, elementwise=tokens * shape.dim, parameters=(width + 1) * shape.dim)


def norm(elements: Number, dim: Number) -> Cost:
    """LayerNorm over dim features of that many elements."""
    return Cost(elementwise=elements, parameters=2 * dim)


def linear(term: str, rows: Number, width: Number, into: Number, *, bias: bool = True) -> Cost:
    """(rows, width) -> (rows, into)."""
    made = rows * into
    return Cost({term: width * made}, elementwise=made if bias else 0, parameters=(width + int(bias)) * into)


models: Registry[Variant] = Registry("model", "vitbench.models")
