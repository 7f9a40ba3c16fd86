"""A batch of token grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitbench.arithmetic import quotient
from vitbench.refusal import Refusal


@dataclass(frozen=True)
class Shape:
    """batch images of prefix + height x width tokens, each of dim features split over heads.

    height, width: the grid in tokens, not pixels. dim: model width (D; Swin's C).
    prefix: tokens beside the grid (CLS, distillation, registers).
    The fields of a case are ints; the closed forms also take NumPy arrays and SymPy symbols.
    """

    batch: Any
    height: Any
    width: Any
    dim: Any
    heads: Any
    prefix: Any = 0

    @property
    def tokens(self) -> Any:
        """N: tokens of one image, prefix included."""
        return self.prefix + self.height * self.width

    @property
    def head_dim(self) -> Any:
        """d: features of one head."""
        return quotient(self.dim, self.heads)

    def unsupported(self) -> str | None:
        """Why no attention has this shape, in one sentence; None if it is sound."""
        for name in ("batch", "height", "width", "dim", "heads"):
            if getattr(self, name) < 1:
                return f"{name} {getattr(self, name)} is less than 1"
        if self.prefix < 0:
            return f"prefix {self.prefix} is less than 0"
        if self.dim % self.heads:
            return f"dim {self.dim} is not divisible by {self.heads} heads"
        return None

    def __str__(self) -> str:
        grid = f"{self.height}x{self.width}"
        grid = f"{self.prefix}+{grid}" if self.prefix else grid
        return f"b{self.batch}.{grid}.d{self.dim}.h{self.heads}"


def grid_of(image: int, patch: int) -> int:
    """Tokens along one side of an image of that many pixels cut into square patches.

    Raises Refusal, a ValueError, where the patch does not divide the image.
    """
    if patch < 1 or image < 1 or image % patch:
        raise Refusal(f"image {image} is not divisible by patch {patch}")
    return image // patch
