"""ResNet with bottleneck blocks, the convolutional network that vision transformers are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Stage
from vitbench.cost import Cost
from vitbench.model import CHANNELS, Variant, linear, models
from vitbench.operator import operators
from vitbench.parts import at_least
from vitbench.pyramid import Pyramid, convolution, positions
from vitbench.shape import Shape

STEM = 64  # features, whatever dim is
EXPANSION = 4  # of a block's last convolution


@operators.add
@dataclass(frozen=True)
class Resnet(Pyramid):
    """Residual network: a 7x7 convolution, max pooling, four stages of bottleneck blocks, a linear head; timm runs it.

    depth: blocks of the third stage; the others have 3, 4 and 3. A stage's stride stands in the 3x3 convolution of its
    first block, as in timm and torchvision, not in the 1x1 before it: 4.1 instead of 3.8 * 10^9 MACs at 224 pixels.
    dim: features of the last stage, 2048 in the paper. heads: 1, as it has none.
    """

    name = "resnet"
    paper = "He et al. 2016 (ResNet), table 1 and figure 5, right"
    rough = ("float32", "bfloat16", "float16")  # they jump where a sum is rounded to the other side of a ReLU

    depth: int = 6
    classes: int = 1000

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, depth=self.depth, classes=self.classes):
            return reason
        if shape.heads != 1:
            return f"a network of convolutions has no heads; expected heads 1, not {shape.heads}"
        if shape.dim % 32:
            return f"dim {shape.dim} is not a multiple of 32, the width of the last stage over that of the first block"
        return None

    def depths(self) -> tuple[int, int, int, int]:
        """Blocks of each stage."""
        return (3, 4, self.depth, 3)

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        shapes = self.shapes(shape)
        stem, pooled = 4 * positions(shapes[0]), positions(shapes[0])  # strides of 2 each
        found = {"stem": Stage((), (*_stem(stem), Cost(elementwise=pooled * STEM)))}
        before, width = pooled, STEM
        for n, (here, depth) in enumerate(zip(shapes, self.depths(), strict=True)):
            pixels = positions(here)
            first = bottleneck(before, pixels, width, here.dim), shortcut(pixels, width, here.dim)
            others = bottleneck(pixels, pixels, here.dim, here.dim).times(depth - 1)
            found[f"stage{n + 1}"] = Stage((), (*first, others))
            before, width = pixels, here.dim
        mean = Cost(elementwise=shape.batch * shape.dim)
        found["head"] = Stage((), (mean, linear("head", shape.batch, shape.dim, self.classes)))
        return found


def _stem(pixels: Number) -> tuple[Cost, Cost]:
    """7x7 with a stride of 2, normed, ReLU. An image has no gradient."""
    cost = convolution("conv", pixels, CHANNELS * 7**2, STEM)
    return cost, Cost(constant=cost.macs, elementwise=pixels * STEM)


def bottleneck(before: Number, pixels: Number, width: Number, into: Number) -> Cost:
    """width -> into / 4 -> into / 4 -> into features by 1x1, 3x3 and 1x1; ReLU after each, the sum before the last.

    before: positions that it takes. pixels: those that it gives, a quarter where it has the stride.
    """
    inner = quotient(into, EXPANSION)
    convolutions = convolution("conv", before, width, inner) + convolution("conv", pixels, 3**2 * inner, inner)
    relus_and_sum = before * inner + pixels * inner + 2 * pixels * into
    return convolutions + convolution("conv", pixels, inner, into) + Cost(elementwise=relus_and_sum)


def shortcut(pixels: Number, width: Number, into: Number) -> Cost:
    """The projection beside the first block of a stage (section 3.3, option B)."""
    return convolution("conv", pixels, width, into)


for _layers, _depth in ((50, 6), (101, 23)):
    models.add(Variant(f"resnet{_layers}", Resnet(_depth), 2048, 1, 0, 224, "He et al. 2016, table 1"))
