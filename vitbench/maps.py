"""What attention looks at: weights of every head, the CLS row over the grid, attention rollout.

A map shows how values were mixed in one layer, NOT why a class was chosen: weights are not attribution. A large
weight on a value that is small, or that later layers discard, does nothing; from the second layer on a token already
holds what it took from others, so its place in the grid is no longer what it stands for; and a mean over heads hides
that heads look at unlike things.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vitbench.refusal import Refusal
from vitbench.shape import Shape


def attention_maps(module: nn.Module, *inputs: Tensor) -> tuple[Any, list[Tensor]]:
    """The module's result, and the weights of each of its softmax attentions in order: (B, G, H, N, M).

    module: a layer, a block or a whole model of this suite, on any backend: for this one call the weights are computed
    by the definition, and mix the values too. Holds all of them at once. Raises Refusal where there is none.
    """
    with _recorded(module) as weights:
        result = module(*inputs)
    if not weights:
        raise Refusal("the module has no softmax attention, so there is no map of it; expected global, window, vit ...")
    return result, weights


def cls_map(weights: Tensor, shape: Shape) -> Tensor:
    """(B, 1, H, N, N) -> (B, H, height, width): how the first prefix token mixes the values of the grid's tokens.

    Not renormalised: what is missing to 1 went to prefix tokens. Of one layer alone, and no attribution (see above).
    Raises Refusal where the weights are not of all tokens of the shape, or it has no prefix token.
    """
    _whole(weights, shape)
    if not shape.prefix:
        raise Refusal("the shape has no prefix token, so no CLS row; expected at least 1")
    row: Tensor = weights[:, 0, :, 0, shape.prefix :]
    return row.unflatten(-1, (shape.height, shape.width))  # type: ignore[no-any-return]


def rollout(layers: Sequence[Tensor], shape: Shape) -> Tensor:
    """(B, N, N): how tokens of the input reach those of the last layer, were mixing all that happens.

    Attention rollout (Abnar & Zuidema 2020, section 3): in each layer the mean over heads, half of it replaced by the
    identity for the residual, rows renormalised; then the product over the layers, later ones from the left.
    layers: weights (B, 1, H, N, N). It hides what heads do apart, and knows nothing of values, projections and MLPs.
    Raises Refusal for weights that are not of all tokens.
    """
    if not len(layers):
        raise Refusal("no weights to roll out; expected those of at least one layer")
    if len({(len(weights), weights.dtype, weights.device) for weights in layers}) > 1:
        raise Refusal("the layers' weights differ in batch, dtype or device; expected those of one call")
    total = torch.eye(shape.tokens, dtype=layers[0].dtype, device=layers[0].device)
    for weights in layers:
        _whole(weights, shape)
        mixed = weights[:, 0].mean(1) + torch.eye(shape.tokens, dtype=weights.dtype, device=weights.device)
        total = mixed / mixed.sum(-1, keepdim=True) @ total
    return total


def _whole(weights: Tensor, shape: Shape) -> None:
    n = shape.tokens
    if weights.ndim != 5 or (weights.shape[1], *weights.shape[3:]) != (1, n, n) or not weights.shape[2]:
        raise Refusal(
            f"weights of the size {tuple(weights.shape)}; expected (B, 1, H, {n}, {n}), of all tokens at once"
        )


@contextmanager
def _recorded(module: nn.Module) -> Iterator[list[Tensor]]:
    """Inside, every part of the module that was given an attend attends by the definition and leaves its weights."""
    found: list[Tensor] = []

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        bias: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        scores = (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.transpose(-2, -1)
        scores = scores if bias is None else scores + bias
        if causal:
            mask = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        found.append(scores.softmax(-1))
        return found[-1] @ v

    own = [(part, part.attend) for part in module.modules() if callable(getattr(part, "attend", None))]
    for part, _ in own:
        part.attend = attend  # type: ignore[assignment]
    try:
        yield found
    finally:
        for part, attend_before in own:
            part.attend = attend_before
