"""The program of the vision transformer."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vitbench.layer import Attend, Block, Layer, layers
from vitbench.model import CHANNELS
from vitbench.models.vit import SPECIAL, Vit
from vitbench.operator import operators
from vitbench.refusal import Refusal
from vitbench.shape import Shape
from vitbench.weights import Renaming, load, renamed

EPS = 1e-6  # of its LayerNorms, as in the authors' code

TIMM: Renaming = (
    (r"patch_embed\.proj\.", "patches."),
    (r"^(cls|dist|reg)_token$", r"\1"),
    (r"^pos_embed$", "positions"),
    (r"\.attn\.", ".attention."),
    (r"\.mlp\.fc1\.", ".mlp.0."),
    (r"\.mlp\.fc2\.", ".mlp.2."),
    (r"^head\.", "heads.0."),
    (r"^head_dist\.", "heads.1."),
)
TORCHVISION: Renaming = (
    (r"^conv_proj\.", "patches."),
    (r"^class_token$", "cls"),
    (r"^encoder\.pos_embedding$", "positions"),
    (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.self_attention\.in_proj_", ".attention.qkv."),
    (r"\.self_attention\.out_proj\.", ".attention.proj."),
    (r"\.mlp\.linear_1\.", ".mlp.0."),
    (r"\.mlp\.linear_2\.", ".mlp.2."),
    (r"\.mlp\.3\.", ".mlp.2."),
    (r"^encoder\.ln\.", "norm."),
    (r"^heads\.head\.", "heads.0."),
)


@layers.add
class VisionTransformer(Layer):
    """Images (B, 3, H, W) -> logits (B, classes) (Dosovitskiy 2021, equations 1 to 4).

    State: patches, cls, dist, reg and positions (1, tokens, D), blocks, norm, heads.
    """

    name = "vit"
    sine: Tensor
    positions: Tensor

    def __init__(self, operator: Vit, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.model, special = operator, SPECIAL[operator.pool]
        dim, grid = shape.dim, shape.height * shape.width
        self.patches = nn.Conv2d(CHANNELS, dim, operator.patch, operator.patch)
        counts = {"cls": min(special, 1), "dist": max(special - 1, 0), "reg": shape.prefix - special}
        self.prefix = [name for name, count in counts.items() if count]
        tables = {name: counts[name] for name in self.prefix}
        if operator.positions == "learned":
            tables["positions"] = special + grid
        for name, rows in tables.items():
            self.register_parameter(name, nn.Parameter(0.02 * torch.randn(1, rows, dim)))
        if operator.positions == "sine":
            self.register_buffer("sine", _sine(shape), persistent=False)
        inner = operators["global"]()
        hidden = operator.width(shape)
        self.blocks = nn.ModuleList(
            Block(layers["global"](inner, shape, attend), hidden, EPS) for _ in range(operator.depth)
        )
        self.norm = nn.LayerNorm(dim, EPS)
        self.heads = nn.ModuleList(nn.Linear(dim, operator.classes) for _ in range(max(special, 1)))

    def forward(self, images: Tensor) -> Tensor:
        x = self.embedded(images)
        for block in self.blocks:
            x = block(x)
        return self.classified(self.norm(x))

    def embedded(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, N, D): CLS, distillation token, registers, then the grid; positions added."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        prefix = {name: getattr(self, name).expand(len(x), -1, -1) for name in self.prefix}
        registers = [prefix.pop("reg")] if "reg" in prefix else []
        if self.model.positions == "sine":
            x = x + self.sine
        if self.model.positions == "learned":
            x = torch.cat([*prefix.values(), x], 1) + self.positions
            return torch.cat([x[:, : len(prefix)], *registers, x[:, len(prefix) :]], 1) if registers else x
        return torch.cat([*prefix.values(), *registers, x], 1) if self.prefix else x

    def classified(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B, classes)."""
        if self.model.pool == "mean":
            return self.heads[0](x[:, self.shape.prefix :].mean(1))  # type: ignore[no-any-return]
        logits = [head(x[:, n]) for n, head in enumerate(self.heads)]
        return logits[0] if len(logits) == 1 else (logits[0] + logits[1]) / 2  # type: ignore[no-any-return]

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Weights of ViT as timm or torchvision name them, or as this module does; positions resized to this grid.

        Raises Refusal for weights that are not of this variant.
        """
        found = renamed(state, TORCHVISION if "conv_proj.weight" in state else TIMM)
        if "positions" in found:
            found["positions"] = resized(found["positions"], SPECIAL[self.model.pool], self.shape)
        load(self, found)


def resized(table: Tensor, special: int, shape: Shape) -> Tensor:
    """(1, special + n, D), n tokens of a square grid -> (1, special + height * width, D).

    As in fine-tuning at a higher resolution (Dosovitskiy 2021, section 3.2): bicubic, to a given size. Antialiased as
    in timm; DeiT's code does without, torchvision's aligns corners. Rows of special tokens are kept. A table of as many
    rows as are wanted is taken as it is. Raises Refusal for what is no table of a square grid.
    """
    if table.shape[1:-1] == (special + shape.height * shape.width,):
        return table
    rows = table.shape[1] - special if table.ndim == 3 else 0
    side = isqrt(max(rows, 0))
    if len(table) != 1 or side < 1 or side**2 != rows or not table.is_floating_point():
        expected = f"(1, {special} + a square number, D)"
        raise Refusal(f"a table of positions of {tuple(table.shape)} cannot be resized; expected floats of {expected}")
    grid = table[:, special:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()  # there is none in half precision
    grid = interpolate(grid, size=(shape.height, shape.width), mode="bicubic", antialias=True)
    return torch.cat([table[:, :special], grid.flatten(2).transpose(1, 2).to(table.dtype)], 1)


def _sine(shape: Shape) -> Tensor:
    """(1, height * width, D): a quarter of the features each for sine and cosine of column and row."""
    rates = 10_000 ** -(torch.arange(shape.dim // 4) / (shape.dim / 4))
    row = torch.arange(shape.height).repeat_interleave(shape.width)
    column = torch.arange(shape.width).repeat(shape.height)
    angles = [place[:, None] * rates[None] for place in (column, row)]
    return torch.cat([part for angle in angles for part in (angle.sin(), angle.cos())], 1)[None]
