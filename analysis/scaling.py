"""What becomes of attention's scores q k^T as the head dimension d grows, with and without the division by sqrt(d).

Vaswani et al. 2017, section 3.2.1, equation 1 and its footnote: for q and k with independent entries of mean 0 and
variance 1 a score has mean 0 and variance d. Here the tokens are those of real images:

- tokens: the 1,797 images of scikit-learn's digits, 8 x 8 pixels, cut into 2 x 2 patches: 16 tokens of 4 features,
  each feature standardised (mean 0, variance 1) over all patches of all images;
- q = x W_q and k = x W_k, entries of W_q and W_k independent normal with variance 1 / 4, so that the entries of q and
  k have variance 1; no training, no bias. Every image has weights of its own, drawn twice: 3,594 draws for each d;
- one head, each of the 16 queries of an image over the 16 keys of the same image.

Spreads are over all scores, the other means over all queries of all images.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FP16_MAX = float(np.finfo(np.float16).max)  # 65504
PATCH = 2  # pixels a side


@dataclass(frozen=True)
class Softness:
    """Means over the queries. largest: the largest weight. jacobian: Frobenius norm of the softmax's Jacobian."""

    largest: float
    jacobian: float


@dataclass(frozen=True)
class Scaling:
    """Of one d. count, std, largest: of the raw scores, the largest by magnitude.

    reach: the largest length of a q times the length of a k of its image; no score and no partial sum of one is larger.
    overflowing: share of the raw scores that are infinite in fp16. raw, scaled: of the softmax over scores and over
    scores / sqrt(d).
    """

    d: int
    count: int
    std: float
    largest: float
    reach: float
    overflowing: float
    raw: Softness
    scaled: Softness

    def overflow_d(self, size: float = 1.0) -> float:
        """The d at which the largest score reaches FP16_MAX, for q and k size times as large; it grows as sqrt(d)."""
        return self.d * (FP16_MAX / (size**2 * self.largest)) ** 2

    def overflow_d_aligned(self, size: float = 1.0) -> float:
        """The same for q and k that point the same way: their score is their lengths' product and grows as d."""
        return self.d * FP16_MAX / (size**2 * self.reach)


def digit_tokens() -> Array | None:
    """(images, 16 tokens, 4 features), standardised; None without scikit-learn."""
    if find_spec("sklearn") is None:
        return None
    images = import_module("sklearn.datasets").load_digits().images
    n, side = len(images), images.shape[1] // PATCH
    patches = images.reshape(n, side, PATCH, side, PATCH).swapaxes(2, 3).reshape(n, side * side, PATCH * PATCH)
    tokens: Array = (patches - patches.mean((0, 1))) / patches.std((0, 1))
    return tokens


def measure(tokens: Array, d: int, draws: int = 2, seed: int = 0) -> Scaling:
    """tokens: (images, N, features), each feature of mean 0 and variance 1. draws: of weights, for every image."""
    random = np.random.default_rng([seed, d])
    found = [_draw(tokens, d, random) for _ in range(draws)]
    scores = np.concatenate([scores for scores, _ in found])
    return Scaling(
        d,
        scores.size,
        float(scores.std()),
        float(np.abs(scores).max()),
        max(reach for _, reach in found),
        overflowing(scores),
        softness(scores),
        softness(scores / np.sqrt(d)),
    )


def _draw(x: Array, d: int, random: np.random.Generator) -> tuple[Array, float]:
    """Raw scores (images, N, N) under fresh weights for every image, and the reach.

    As (x W_q) (x W_k)^T = x (W_q W_k^T) x^T, the product in the middle, features x features, stands for q and k.
    """
    images, _, features = x.shape
    w_q, w_k = (random.standard_normal((images, features, d), np.float32) / features**0.5 for _ in range(2))
    lengths = [np.sqrt((x @ (w @ w.swapaxes(1, 2)) * x).sum(-1)).max(-1) for w in (w_q, w_k)]
    return x @ (w_q @ w_k.swapaxes(1, 2)) @ x.swapaxes(1, 2), float((lengths[0] * lengths[1]).max())


def softness(scores: Array) -> Softness:
    """scores: (..., N), softmax over the last."""
    p = softmax(scores)
    return Softness(float(p.max(-1).mean()), float(jacobian_norm(p).mean()))


def softmax(scores: Array) -> Array:
    """Over the last axis."""
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights: Array = e / e.sum(-1, keepdims=True)
    return weights


def jacobian_norm(p: Array) -> Array:
    """Frobenius norm of diag(p) - p p^T, the derivative of the softmax p (..., N) by its scores; shape (...)."""
    squares = p**2
    across = squares * (squares.sum(-1, keepdims=True) - squares)  # entries beside the diagonal: (p_i p_j)^2
    norm: Array = np.sqrt(np.maximum((squares * (1 - p) ** 2 + across).sum(-1), 0))  # rounding may leave -1e-17
    return norm


def overflowing(scores: Array) -> float:
    """Share of the scores that are infinite once stored in fp16."""
    with np.errstate(over="ignore"):
        return float(np.isinf(scores.astype(np.float16)).mean())
