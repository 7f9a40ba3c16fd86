"""The program of attention under a random mask."""

from __future__ import annotations

import torch
from torch import Tensor

from vitbench.layer import Attend, SelfAttention, layers
from vitbench.operators.masked import Masked
from vitbench.shape import Shape


@layers.add
class MaskedAttention(SelfAttention):
    """All tokens in one group, under one random mask for all images and heads; programs of one shape have the same."""

    name = "masked"
    allowed: Tensor

    def __init__(self, operator: Masked, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            rank = torch.rand(shape.tokens, shape.tokens).fill_diagonal_(1)  # above all others: a token sees itself
        kept = rank.topk(operator.keys(shape)).indices
        allowed = torch.zeros(shape.tokens, shape.tokens, dtype=torch.bool).scatter_(1, kept, True)
        self.register_buffer("allowed", allowed[None, None, None], persistent=False)

    def masks(self) -> tuple[Tensor]:
        return (self.allowed,)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend_groups(x.unsqueeze(1), mask=self.allowed).squeeze(1)
