"""The program of attention under a random mask."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import MaskedSelfAttention, layers
from vitbench.operators.masked import Masked


@layers.add
class MaskedAttention(MaskedSelfAttention):
    """All tokens in one group, under one random mask for all images and heads; programs of one shape have the same."""

    name = "masked"
    operator: Masked

    def made(self) -> Tensor:
        operator, shape = self.operator, self.shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            rank = torch.rand(shape.tokens, shape.tokens).fill_diagonal_(1)  # above all others: a token sees itself
        kept = rank.topk(operator.keys(shape)).indices
        allowed = torch.zeros(shape.tokens, shape.tokens, dtype=torch.bool).scatter_(1, kept, True)
        return allowed[None, None, None]
