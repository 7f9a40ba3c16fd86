"""Parts that operators on paper share: one plain attention, projections, refusals of parameters."""

from __future__ import annotations

from typing import Any

from vitbench.arithmetic import Number, quotient
from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.shape import Shape


def self_attention(shape: Shape, **given: Any) -> Attention:
    """All N tokens of an image among themselves, in one group. given: further fields of Attention."""
    n = shape.tokens
    return Attention(shape.batch, 1, shape.heads, n, n, shape.head_dim, **given)


def projections(queries: Number, keys: Number, dim: Number, width: Number | None = None) -> Cost:
    """q and proj of that many rows, k and v of that many others, with biases (Vaswani 2017, section 3.2.2).

    width: features of q, k and v each, and of what proj takes and gives; None means dim.
    """
    width = dim if width is None else width
    return Cost(
        macs={"qkv": (queries + 2 * keys) * dim * width, "proj": queries * width**2},
        elementwise=2 * (queries + keys) * width,  # biases
        parameters=3 * dim * width + width**2 + 4 * width,
    )


def self_projections(shape: Shape) -> Cost:
    """qkv and proj of all N tokens."""
    tokens = shape.batch * shape.tokens
    return projections(tokens, tokens, shape.dim)


def subsampled(shape: Shape, subsample: int, frames: int = 1) -> Number:
    """Tokens of a grid, or those that a 2x2 max-pool of each of its frames, one above another, leaves."""
    if not subsample:
        return shape.tokens
    return frames * (quotient(shape.height, frames) // 2) * (shape.width // 2)


def at_least(least: int, **given: int) -> str | None:
    """The refusal of a parameter, given by its name, that is too small."""
    small = [f"{name} {value} is less than {least}" for name, value in given.items() if value < least]
    return small[0] if small else None


def odd(**given: int) -> str | None:
    """The refusal of a side that has no middle."""
    even = [f"{name} {value} is not odd, so that it has no middle" for name, value in given.items() if value % 2 == 0]
    return at_least(1, **given) or (even[0] if even else None)


def switch(**given: int) -> str | None:
    """The refusal of what is neither off nor on."""
    others = [f"{name} {value} is neither 0 nor 1" for name, value in given.items() if value not in (0, 1)]
    return others[0] if others else None
