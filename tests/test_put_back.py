"""A counter leaves torch and the module as they were, also where the model raises in the middle of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from switches import moved, switches
from torch import Tensor, nn
from torch.nn import functional

from vitbench.audits.worker import AsItIs
from vitbench.counter import Counter, Uncountable, counters


class Model(nn.Module):
    """Raises once it has computed, unless fails is unset."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.fails = nn.Linear(4, 4), nn.BatchNorm1d(4), True

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.linear(x)) @ torch.ones(4, 4))
        if self.fails:
            raise ValueError("of its own")
        return x


def held(module: nn.Module) -> list[dict[str, Any]]:
    """What the attributes of each part hold, hooks and modes among them."""
    return [
        {name: list(one) if isinstance(one, dict) else one for name, one in vars(part).items()}
        for part in module.modules()
    ]


@pytest.mark.parametrize("counter", [one for one in counters if not one.lacking()], ids=lambda one: one.name)
@pytest.mark.filterwarnings("ignore")
def test_nothing_stays_of_a_count(counter: Counter) -> None:
    model, x = Model().train(), torch.zeros(2, 4)
    program = AsItIs(model, (x,), training=False)
    model.fails = False
    with torch.no_grad():
        right = counter.count(program)  # what a package sets up as it is first used stays
        before = switches(), {**vars(torch.Tensor)}, held(model)
        model.fails = True
        with pytest.raises((ValueError, Uncountable, RuntimeError)):
            counter.count(program)
        model.fails = False
        again = counter.count(program)
        assert not moved(before[0], switches())
    assert {**vars(torch.Tensor)} == before[1]
    assert held(model) == before[2]
    assert again == right
