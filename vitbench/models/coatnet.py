"""CoAtNet-0: two stages of convolutions, then two of attention over the whole grid with relative positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Attention, Stage
from vitbench.cost import Cost
from vitbench.model import CHANNELS, Variant, linear, models, norm
from vitbench.operator import MLP_RATIO, operators
from vitbench.parts import at_least
from vitbench.pyramid import Pyramid, convolution, positions
from vitbench.shape import Shape

DEPTHS = (2, 3, 5, 2)  # blocks of S1 to S4 (table 3)
EXPANSION, SQUEEZE, HEAD_DIM = 4, 4, 32  # of MBConv; of its squeeze-excitation; features of a head (table 3)
STEM = 12  # dim over the width of S0: 768 / 64


@operators.add
@dataclass(frozen=True)
class Coatnet(Pyramid):
    """CoAtNet-0: a stem of two convolutions, two stages of MBConv, two of relative attention, a head; timm runs it.

    down: the convolution of a stage's first MBConv that has the stride: the first, 1x1 (equation 5, the paper's own
    numbers), or the depthwise one, which takes a tenth more MACs (table 9; timm's default).
    dim: features of the last stage, 768 in the paper; the other widths keep its proportions. heads: those of the last
    stage, of 32 features. As in timm, pooling is by the mean and the head has a hidden layer of dim features.
    """

    name = "coatnet"
    paper = "Dai et al. 2021 (CoAtNet), table 3 and appendix A.1"
    rough = ("bfloat16",)  # through BatchNorm; gradients have up to 70 times the error of the logits
    choices = {"down": ("first", "depthwise")}  # noqa: RUF012

    down: str = "first"
    classes: int = 1000

    def unsupported(self, shape: Shape) -> str | None:
        if reason := at_least(1, classes=self.classes):
            return reason
        if shape.dim % (16 * STEM):
            return f"dim {shape.dim} is not a multiple of {16 * STEM}, which the widths and heads of all stages need"
        if shape.dim != HEAD_DIM * shape.heads:
            return f"heads have {HEAD_DIM} features; expected heads {shape.dim // HEAD_DIM}, not {shape.heads}"
        return None

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        shapes = self.shapes(shape)
        stem = replace(shapes[0], height=2 * shapes[0].height, width=2 * shapes[0].width, dim=quotient(shape.dim, STEM))
        found, before = {"stem": Stage((), (_stem(stem),))}, stem
        for n, (here, depth) in enumerate(zip(shapes, DEPTHS, strict=True)):
            block = self._mbconv if n < 2 else transformer
            others = block(here, here).times(depth - 1)
            found[f"stage{n + 1}"] = Stage((), (shortcut(before, here), block(before, here), others))
            before = here
        pooled = norm(2 * shape.batch * shape.dim, shape.dim)  # mean, then normed
        hidden = linear("head", shape.batch, shape.dim, shape.dim) + Cost(elementwise=shape.batch * shape.dim)  # tanh
        found["head"] = Stage((), (pooled, hidden, linear("head", shape.batch, shape.dim, self.classes)))
        return found

    def _mbconv(self, before: Shape, here: Shape) -> Cost:
        """Norm, 1x1 to 4 x here.dim, depthwise 3x3, squeeze-excitation, 1x1; GELU after both norms within."""
        hidden, pixels = EXPANSION * here.dim, positions(here)
        expanded = pixels if self.down == "first" else positions(before)
        gelus_and_residual = Cost(elementwise=expanded * hidden + pixels * hidden + pixels * here.dim)
        depthwise = Cost(macs={"depthwise": pixels * hidden * 3**2}, parameters=hidden * 3**2)
        return (
            norm(positions(before) * before.dim, before.dim)
            + convolution("conv", expanded, before.dim, hidden)
            + depthwise
            + norm(pixels * hidden, hidden)
            + excitation(here, hidden)
            + linear("conv", pixels, hidden, here.dim)
            + gelus_and_residual
        )


def _stem(stem: Shape) -> Cost:
    """Two 3x3 convolutions, the first with a stride of 2, normed, GELU. An image has no gradient."""
    pixels = positions(stem)
    first = convolution("conv", pixels, CHANNELS * 3**2, stem.dim)
    second = linear("conv", pixels, stem.dim * 3**2, stem.dim, bias=False)
    return first + second + Cost(constant=first.macs, elementwise=pixels * stem.dim)


def shortcut(before: Shape, here: Shape) -> Cost:
    """Beside the first block of a stage: pooled, projected (equations 4 and 5)."""
    pixels = positions(here)
    return Cost(elementwise=pixels * before.dim) + linear("conv", pixels, before.dim, here.dim)


def excitation(here: Shape, hidden: Number) -> Cost:
    """Squeeze-excitation: the mean of each feature through a layer a quarter as wide as the block's result, SiLU, back
    and a sigmoid, which scales the feature.
    """
    batch, squeezed = here.batch, quotient(here.dim, SQUEEZE)
    layers = linear("se", batch, hidden, squeezed) + linear("se", batch, squeezed, hidden)
    return layers + Cost(elementwise=batch * (2 * hidden + squeezed) + positions(here) * hidden)


def transformer(before: Shape, here: Shape) -> Cost:
    """Pre-norm block of relative attention (equation 3) and an MLP; its input is pooled after the first norm where its
    grid is larger (equation 4).
    """
    pixels, dim, heads = positions(here), here.dim, quotient(here.dim, HEAD_DIM)
    tokens = here.height * here.width
    attention = Attention(here.batch, 1, heads, tokens, tokens, HEAD_DIM, bias=(1, 1, heads, tokens, tokens))
    pooled = 0 if before is here else pixels * before.dim
    gelu_and_residuals = Cost(elementwise=pooled + pixels * (MLP_RATIO + 2) * dim)
    return (
        norm(positions(before) * before.dim, before.dim)
        + linear("qkv", pixels, before.dim, 3 * dim)
        + attention.cost()
        + Cost(parameters=(2 * here.height - 1) * (2 * here.width - 1) * heads)
        + linear("proj", pixels, dim, dim)
        + norm(pixels * dim, dim)
        + linear("mlp", pixels, dim, MLP_RATIO * dim)
        + linear("mlp", pixels, MLP_RATIO * dim, dim)
        + gelu_and_residuals
    )


for _name, _down in (("coatnet_0", "first"), ("coatnet_0_depthwise", "depthwise")):
    models.add(Variant(_name, Coatnet(_down), 768, 24, 0, 224, "Dai et al. 2021, tables 3 and 9"))
