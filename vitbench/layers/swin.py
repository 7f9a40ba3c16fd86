"""The program of the Swin transformer, version 1."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import pad

from vitbench.layer import Attend, Block, Layer, layers
from vitbench.model import CHANNELS
from vitbench.models.swin import PATCH, Swin
from vitbench.operator import MLP_RATIO
from vitbench.shape import Shape
from vitbench.weights import Renaming, load, renamed

BOTH: Renaming = (
    (r"\.attn\.", ".attention."),
    (r"relative_position_bias_table$", "table"),
    (r"\.mlp\.fc1\.", ".mlp.0."),
    (r"\.mlp\.fc2\.", ".mlp.2."),
    (r"\.mlp\.3\.", ".mlp.2."),
    (r"^head\.(?:fc\.)?", "head."),
)
TIMM: Renaming = (
    (r"^patch_embed\.proj\.", "patches."),
    (r"^patch_embed\.norm\.", "patches_norm."),
    (r"^layers\.(\d)\.blocks\.", r"stages.\1.blocks."),
    (r"^layers\.(\d)\.downsample\.", r"stages.\1.merging."),
    *BOTH,
)
MERGED = tuple((rf"^features\.{2 * n}\.", f"stages.{n}.merging.") for n in (1, 2, 3))
BLOCKS = tuple((rf"^features\.{2 * n + 1}\.(\d+)\.", rf"stages.{n}.blocks.\1.") for n in (0, 1, 2, 3))
TORCHVISION: Renaming = (
    (r"^features\.0\.0\.", "patches."),
    (r"^features\.0\.2\.", "patches_norm."),
    *MERGED,
    *BLOCKS,
    *BOTH,
)


class Merging(nn.Module):
    """(B, height * width, C) -> (B, tokens of a half as fine grid, 2C), odd sides padded with zeros."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.sides = (shape.height, shape.width)
        self.norm = nn.LayerNorm(4 * shape.dim)
        self.reduction = nn.Linear(4 * shape.dim, 2 * shape.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        height, width = self.sides
        x = x.view(-1, height, width, x.shape[-1])
        x = pad(x, (0, 0, 0, width % 2, 0, height % 2)) if height % 2 or width % 2 else x
        x = x.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # (B, h, 2, w, 2, C)
        x = x.permute(0, 1, 3, 4, 2, 5).flatten(3).flatten(1, 2)
        merged: Tensor = self.reduction(self.norm(x))
        return merged


class StageOfBlocks(nn.Module):
    """merging into it (none in the first), then blocks, the windows of every other one shifted."""

    def __init__(self, merging: nn.Module, blocks: list[Block]) -> None:
        super().__init__()
        self.merging, self.blocks = merging, nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.merging(x))
        return x


@layers.add
class SwinTransformer(Layer):
    """Images (B, 3, H, W) -> logits (B, classes). State: patches, patches_norm, stages, norm, head."""

    name = "swin"

    def __init__(self, operator: Swin, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.patches, self.patches_norm = nn.Conv2d(CHANNELS, shape.dim, PATCH, PATCH), nn.LayerNorm(shape.dim)
        shapes, stages = operator.shapes(shape), []
        for n, (here, depth) in enumerate(zip(shapes, operator.depths(), strict=True)):
            blocks = [
                Block(layers["window"](layer, here, attend), MLP_RATIO * here.dim) for layer in operator.layers(depth)
            ]
            stages.append(StageOfBlocks(Merging(shapes[n - 1]) if n else nn.Identity(), blocks))
        self.stages = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(shapes[-1].dim)
        self.head = nn.Linear(shapes[-1].dim, operator.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches_norm(self.patches(images).flatten(2).transpose(1, 2))
        x = self.norm(self.stages(x))
        logits: Tensor = self.head(x.mean(1))
        return logits

    def masks(self) -> tuple[Tensor | None, ...]:
        inner = [module for module in self.modules() if isinstance(module, Layer) and module is not self]
        return tuple(mask for layer in inner for mask in layer.masks())

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Weights of Swin as timm or torchvision name them, or as this module does.

        Raises Refusal for weights that are not of this variant, or whose windows are of another size.
        """
        known = {name: value for name, value in state.items() if not name.endswith(("position_index", "attn_mask"))}
        load(self, renamed(known, TORCHVISION if "features.0.0.weight" in state else TIMM))
