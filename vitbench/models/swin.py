"""The Swin transformer, version 1: windows, shifted in every other block, patches merged between four stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from vitbench.arithmetic import ceil_div
from vitbench.attention import Stage
from vitbench.cost import Cost
from vitbench.held import FLOAT, Held
from vitbench.model import Model, Variant, linear, models, norm, patch_embedding
from vitbench.operator import MLP_RATIO, Operator, block, operators
from vitbench.parts import at_least
from vitbench.shape import Shape

PATCH = 4  # pixels a side


@operators.add
@dataclass(frozen=True)
class Swin(Model):
    """Swin transformer: four stages of window attention, shifted in every other block; patches merged between them.

    window: M. depth: blocks of the third stage; the others have two. Grids are padded up to whole windows in attention
    and to even sides where patches merge; a window is no longer than the grid's side, and unshifted then.
    dim and heads are those of the first stage and double from stage to stage.
    """

    name = "swin"
    paper = "Liu et al. 2021 (Swin Transformer), sections 3.1 and 3.3, figure 3"
    prefixed = False

    window: int
    depth: int = 6
    classes: int = 1000

    def pixels(self) -> int:
        return PATCH

    def unsupported(self, shape: Shape) -> str | None:
        return at_least(1, depth=self.depth, classes=self.classes) or self.layers(1)[0].unsupported(shape)

    def depths(self) -> tuple[int, int, int, int]:
        """Blocks of each stage."""
        return (2, 2, self.depth, 2)

    def layers(self, count: int) -> list[Operator]:
        """The attention of that many blocks, in turn as it is and shifted by half a window."""
        kind, half = operators["window"], self.window // 2
        return [kind(window=self.window, shift=n % 2 * half) for n in range(count)]  # type: ignore[call-arg]

    def shapes(self, shape: Shape) -> list[Shape]:
        """Of the tokens in each stage."""
        found = [shape]
        for _ in self.depths()[1:]:
            last = found[-1]
            height, width = ceil_div(last.height, 2), ceil_div(last.width, 2)
            found.append(replace(last, height=height, width=width, dim=2 * last.dim, heads=2 * last.heads))
        return found

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        shapes = self.shapes(shape)
        tokens, last = shape.batch * shape.tokens, shapes[-1]
        found = {"patches": Stage((), (patch_embedding(shape, PATCH), norm(tokens * shape.dim, shape.dim)))}
        plain, shifted = self.layers(2)
        for n, (here, depth) in enumerate(zip(shapes, self.depths(), strict=True), 1):
            around = plain.around(here), block(here, MLP_RATIO * here.dim)  # no matter whether shifted
            if n > 1:
                found[f"merging{n}"] = Stage((), self._merging(here))
            found[f"stage{n}"] = Stage(plain.attentions(here) + shifted.attentions(here), 2 * around, depth // 2)
            if depth % 2:
                found[f"stage{n}_last"] = Stage(plain.attentions(here), around)
        pooled = norm(last.batch * last.tokens * last.dim + last.batch * last.dim, last.dim)  # and the mean of tokens
        found["head"] = Stage((), (pooled, linear("head", last.batch, last.dim, self.classes)))
        return found

    def peak_bytes(self, shape: Shape, mode: str) -> int:
        shapes = self.shapes(shape)
        stages = [self._held(here, depth) for here, depth in zip(shapes, self.depths(), strict=True)]
        logits, pooled = (int(FLOAT * shape.batch * width) for width in (self.classes, shapes[-1].dim))
        if mode == "inference":
            return max(stages[-1][0].x + pooled + logits, *_inference(stages))  # the last norm's result
        first = stages[0][0]
        peak, saved = 0, first.x + first.statistics  # by the norm of patches
        for n, blocks in enumerate(stages):
            if n:  # merging saves its tokens side by side, twice as wide as its result, and normed
                saved += 4 * blocks[0].x + blocks[0].statistics
            for held in blocks:
                saved += held.saved()
                peak = max(peak, saved + held.backward())
        return peak + 2 * logits  # and their gradient

    def _held(self, shape: Shape, depth: int) -> list[Held]:
        """By each block of a stage."""
        kinds = [Held.of(layer, shape, MLP_RATIO * shape.dim) for layer in self.layers(2)]
        return [kinds[n % 2] for n in range(depth)]

    def _merging(self, into: Shape) -> tuple[Cost, Cost]:
        """2 x 2 tokens of the stage before side by side, normed, and 4C -> 2C (section 3.1)."""
        tokens, width = into.batch * into.tokens, 2 * into.dim
        return norm(tokens * width, width), linear("merge", tokens, width, into.dim, bias=False)


def _inference(stages: list[list[Held]]) -> Iterator[int]:
    """Peak bytes of each stage, by its blocks in turn.

    Callers hold the first tokens to the end, and the result of the stage before and what the first block takes while
    the stage runs. So the second block, which may be shifted, is never below another.
    """
    for before, blocks in zip([None, *stages], stages, strict=False):
        entry = blocks[0].x if len(blocks) > 1 else 0  # what a lone block takes is its own input
        around = stages[0][0].x + before[0].x + entry if before else entry
        yield around + blocks[:2][-1].inference()


VARIANTS = {  # width, heads, blocks of the third stage: Liu 2021, section 3.3; heads of 32 features
    "t": (96, 3, 6),
    "s": (96, 3, 18),
    "b": (128, 4, 18),
    "l": (192, 6, 18),
}
for _size, (_dim, _heads, _depth) in VARIANTS.items():
    _source = "Liu et al. 2021, section 3.3"
    models.add(Variant(f"swin_{_size}", Swin(7, _depth), _dim, _heads, 0, 224, _source))
    if _size in ("b", "l"):  # trained at 384 with windows of 12 (table 1)
        models.add(Variant(f"swin_{_size}_384", Swin(12, _depth), _dim, _heads, 0, 384, "Liu et al. 2021, table 1"))
