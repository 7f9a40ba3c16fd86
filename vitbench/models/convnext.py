"""ConvNeXt: a convolutional network in the image of Swin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitbench.attention import Stage
from vitbench.cost import Cost
from vitbench.model import Variant, linear, models, norm, patch_embedding
from vitbench.operator import MLP_RATIO, operators
from vitbench.parts import at_least
from vitbench.pyramid import Pyramid, positions
from vitbench.shape import Shape

PATCH = 4  # pixels a side
KERNEL = 7  # of the depthwise convolutions


@operators.add
@dataclass(frozen=True)
class Convnext(Pyramid):
    """ConvNeXt: patches, four stages of depthwise 7x7 convolutions and MLPs, 2x2 convolutions between; timm runs it.

    depth: blocks of the third stage; the others have 3. dim: features of the last stage. heads: 1, as it has none.
    """

    name = "convnext"
    paper = "Liu et al. 2022 (ConvNeXt), figure 4 and table 9"

    depth: int = 9
    classes: int = 1000

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, depth=self.depth, classes=self.classes):
            return reason
        if shape.heads != 1:
            return f"a network of convolutions has no heads; expected heads 1, not {shape.heads}"
        if shape.dim % 8:
            return f"dim {shape.dim} is not a multiple of 8, the width of the last stage over that of the first"
        return None

    def depths(self) -> tuple[int, int, int, int]:
        """Blocks of each stage."""
        return (3, 3, self.depth, 3)

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        shapes = self.shapes(shape)
        first = shapes[0]
        embedding = patch_embedding(first, PATCH), norm(positions(first) * first.dim, first.dim)
        found = {"patches": Stage((), embedding)}
        for n, (here, depth) in enumerate(zip(shapes, self.depths(), strict=True)):
            before = (downsampling(shapes[n - 1], here),) if n else ()
            found[f"stage{n + 1}"] = Stage((), (*before, block(here).times(depth)))
        pooled = norm(2 * shape.batch * shape.dim, shape.dim)  # mean, then normed
        found["head"] = Stage((), (pooled, linear("head", shape.batch, shape.dim, self.classes)))
        return found


def downsampling(before: Shape, here: Shape) -> Cost:
    """LayerNorm, then 2x2 pixels to one (section 2.6, separate downsampling layers)."""
    normed = norm(positions(before) * before.dim, before.dim)
    return normed + linear("downsample", positions(here), 2**2 * before.dim, here.dim)


def block(here: Shape) -> Cost:
    """Depthwise convolution, LayerNorm, C -> 4C -> C with GELU, a scale of each feature, residual (figure 4)."""
    pixels, dim = positions(here), here.dim
    depthwise = Cost(
        macs={"depthwise": pixels * dim * KERNEL**2}, elementwise=pixels * dim, parameters=(KERNEL**2 + 1) * dim
    )
    mlp = linear("mlp", pixels, dim, MLP_RATIO * dim) + linear("mlp", pixels, MLP_RATIO * dim, dim)
    gelu = Cost(elementwise=pixels * MLP_RATIO * dim)
    scale_and_residual = Cost(elementwise=2 * pixels * dim, parameters=dim)
    return depthwise + norm(pixels * dim, dim) + mlp + gelu + scale_and_residual


for _size, _dim, _depth in (("t", 768, 9), ("s", 768, 27)):
    models.add(Variant(f"convnext_{_size}", Convnext(_depth), _dim, 1, 0, 224, "Liu et al. 2022, section 3"))
