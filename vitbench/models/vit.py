"""The vision transformer, DeiT's distillation token and register tokens: one table of variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from vitbench.arithmetic import Number
from vitbench.attention import Stage
from vitbench.cost import Cost
from vitbench.held import FLOAT, Held
from vitbench.model import Model, Variant, linear, models, norm, patch_embedding
from vitbench.operator import MLP_RATIO, block, operators
from vitbench.parts import at_least
from vitbench.shape import Shape

SPECIAL = {"cls": 1, "distilled": 2, "mean": 0}  # prefix tokens that a way of pooling needs; the rest are registers


@operators.add
@dataclass(frozen=True)
class Vit(Model):
    """Vision transformer: patches, depth pre-norm blocks of global attention, a linear head.

    patch: pixels a side. hidden: width of the MLPs, 0 means 4 D. pool: what is classified: the CLS token; CLS and
    distillation token, each by a head of its own, their logits averaged as in DeiT's code (Touvron 2021, section 4,
    adds their softmaxes); or the mean of the grid's tokens. positions: learned, one a token (Dosovitskiy 2021, appendix
    D.4), 2-D sine (Chen 2021, MoCo v3), or none. Prefix tokens of the shape beyond those of pool are registers
    (Darcet 2024), which have no position.
    """

    name = "vit"
    paper = "Dosovitskiy et al. 2021 (ViT), equations 1 to 4 and table 1; Touvron et al. 2021 (DeiT), section 4"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "pool": tuple(SPECIAL),
        "positions": ("learned", "sine", "none"),
    }

    patch: int
    depth: int = 12
    hidden: int = 0
    classes: int = 1000
    pool: str = "cls"
    positions: str = "learned"

    def pixels(self) -> int:
        return self.patch

    def width(self, shape: Shape) -> Number:
        """Of the hidden layer of its MLPs."""
        return self.hidden if self.hidden else MLP_RATIO * shape.dim

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, patch=self.patch, depth=self.depth, classes=self.classes):
            return reason
        if shape.prefix < SPECIAL[self.pool]:
            return f"pool {self.pool} needs {SPECIAL[self.pool]} prefix tokens, got {shape.prefix}"
        if self.positions == "sine" and shape.dim % 4:
            return f"sine positions take a dim that is a multiple of 4, not {shape.dim}"
        return None

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        layer, tokens = operators["global"](), shape.batch * shape.tokens
        around = layer.around(shape), block(shape, self.width(shape))
        return {
            "patches": Stage((), (patch_embedding(shape, self.patch), self._tokens(shape))),
            "blocks": Stage(layer.attentions(shape), around, self.depth),
            "head": Stage((), (norm(tokens * shape.dim, shape.dim), self._heads(shape))),
        }

    def peak_bytes(self, shape: Shape, mode: str) -> int:
        held = Held.of(operators["global"](), shape, self.width(shape))
        logits, pooled = (int(FLOAT * shape.batch * width) for width in (self.classes, shape.dim))
        if mode == "inference":  # of two heads: the logits of each, their sum, its half
            classifying = {"cls": logits, "distilled": 4 * logits, "mean": pooled + logits}[self.pool]
            return max(held.inference(), 2 * held.x + classifying)  # the last block's result, and normed
        classifying = 2 * held.x  # gradients of the last norm's result and input
        if self.pool == "distilled":
            classifying = max(
                3 * held.x,  # gradients of the norm's result, by either head and summed
                2 * held.x + logits + pooled,  # the result, its gradient by one head; on the way to it by the other
                held.x + 2 * logits,  # the result, and of the four logits those that go
            )
        normed = held.x + held.statistics  # saved by the last norm
        return self.depth * held.saved() + 2 * logits + max(held.backward(), normed + classifying)

    def _tokens(self, shape: Shape) -> Cost:
        """Prefix tokens and positions."""
        if self.positions == "none":
            return Cost(parameters=shape.prefix * shape.dim)
        prefix, grid = shape.prefix * shape.dim, shape.height * shape.width * shape.dim
        if self.positions == "sine":
            return Cost(elementwise=shape.batch * grid, parameters=prefix)
        table = SPECIAL[self.pool] * shape.dim + grid
        return Cost(elementwise=shape.batch * table, parameters=prefix + table)

    def _heads(self, shape: Shape) -> Cost:
        head = linear("head", shape.batch, shape.dim, self.classes)
        if self.pool == "distilled":
            return head + head + Cost(elementwise=2 * shape.batch * self.classes)  # sum, halved
        return head + Cost(elementwise=shape.batch * shape.dim) if self.pool == "mean" else head


VIT, DEIT = "Dosovitskiy et al. 2021 (ViT), table 1", "Touvron et al. 2021 (DeiT), table 1"
SIZES = {  # width, depth, heads, hidden, source
    "ti": (192, 12, 3, 768, DEIT),
    "s": (384, 12, 6, 1536, DEIT),
    "b": (768, 12, 12, 3072, VIT),
    "l": (1024, 24, 16, 4096, VIT),
    "h": (1280, 32, 16, 5120, VIT),
    "g": (1408, 40, 16, 6144, "Zhai et al. 2022 (Scaling Vision Transformers), table 2"),
}
PATCHES = (32, 16, 14, 8)  # each with every size, though papers have only some of these pairs


def _variants() -> Iterator[Variant]:
    for (size, (dim, depth, heads, hidden, source)), patch in product(SIZES.items(), PATCHES):
        model = Vit(patch, depth, 0 if hidden == MLP_RATIO * dim else hidden)
        yield Variant(f"vit_{size}_{patch}", model, dim, heads, 1, 224, source)
        if size in ("ti", "s", "b") and patch == 16:
            distilled = replace(model, pool="distilled")
            yield Variant(f"deit_{size}_16_distilled", distilled, dim, heads, 2, 224, DEIT)


for _variant in _variants():
    models.add(_variant)
