"""LITv2's HiLo attention: some heads within local windows, the others on average-pooled windows."""

from __future__ import annotations

from dataclasses import dataclass

from vitbench.arithmetic import Number, ever_positive, quotient, smaller
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import Operator, operators
from vitbench.parts import projections
from vitbench.shape import Shape


@operators.add
@dataclass(frozen=True)
class HiLo(Operator):
    """HiLo attention: Hi-Fi heads attend within s x s windows, Lo-Fi heads to one average-pooled key a window.

    3ND D_h + ND_h^2 + 2s^2 ND_h MACs an image in Hi-Fi and (1 + 2 / s^2) ND D_l + ND_l^2 + 2N^2 D_l / s^2 in Lo-Fi,
    whose heads are D_h and D_l features wide together.
    window: s, which must divide both sides. alpha: per cent of the heads that are Lo-Fi, rounded down.
    """

    name = "hilo"
    paper = "Pan et al. 2022 (LITv2, Fast Vision Transformers with HiLo Attention), section 3.2"
    prefixed = False

    window: int = 2
    alpha: int = 90

    def split(self, shape: Shape) -> tuple[Number, Number]:
        """Hi-Fi heads and Lo-Fi heads."""
        low = shape.heads * self.alpha // 100
        return shape.heads - low, low

    def windows(self, shape: Shape) -> Number:
        """Windows of one image: as many keys has a Lo-Fi head."""
        return quotient(shape.height * shape.width, self.window**2)

    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        (high, low), windows, inside = self.split(shape), self.windows(shape), self.window**2
        hi_fi = Attention(shape.batch, windows, high, inside, inside, shape.head_dim)
        lo_fi = Attention(shape.batch, 1, low, shape.tokens, windows, shape.head_dim)
        return tuple(one for one in (hi_fi, lo_fi) if ever_positive(one.heads))

    def unsupported(self, shape: Shape) -> str | None:
        if self.window < 2:
            return f"window {self.window} pools nothing, as global attention does; expected 2 or more"
        if not 0 <= self.alpha <= 100:
            return f"alpha {self.alpha} is not within 0 and 100 per cent"
        for name, side in (("height", shape.height), ("width", shape.width)):
            if side % self.window:
                return f"{name} {side} is not divisible by window {self.window}"
        return None

    def around(self, shape: Shape) -> Cost:
        high, low = (heads * shape.head_dim for heads in self.split(shape))
        tokens, windows, dim = shape.batch * shape.tokens, shape.batch * self.windows(shape), shape.dim
        pooled = windows * dim * smaller(low, 1)  # where there is a Lo-Fi head at all
        both = projections(tokens, tokens, dim, high) + projections(tokens, windows, dim, low)
        return both + Cost(elementwise=pooled)
