"""What the convolutional comparators have in common: four stages, each half as fine and twice as wide as the last."""

from __future__ import annotations

from dataclasses import replace

from vitbench.arithmetic import Number, quotient
from vitbench.cost import Cost
from vitbench.model import Model, linear, norm
from vitbench.shape import Shape

FACTORS = (8, 4, 2, 1)  # of each stage: its grid over the last stage's, the last stage's width over its own
PIXELS = 32  # of the image a position of the last stage, each way


class Pyramid(Model):
    """Built and run by timm. The shape is that of the last stage: its grid, and its features as dim.

    So the sides of an image are multiples of 32 pixels, which every stage halves without a rest.
    """

    prefixed = False
    packages = ("timm", "torchvision")  # timm imports torchvision

    def pixels(self) -> int:
        return PIXELS

    def shapes(self, shape: Shape) -> list[Shape]:
        """Of what each stage gives."""
        return [
            replace(shape, height=n * shape.height, width=n * shape.width, dim=quotient(shape.dim, n)) for n in FACTORS
        ]


def convolution(term: str, pixels: Number, width: Number, into: Number) -> Cost:
    """Without a bias, then BatchNorm. pixels: of the batch, that it gives. width: of the kernel, all its inputs."""
    return linear(term, pixels, width, into, bias=False) + norm(pixels * into, into)


def positions(shape: Shape) -> Number:
    """Of the whole batch."""
    return shape.batch * shape.height * shape.width
