"""A counter names what it has no formula for, and says why where it cannot count at all."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from torch import nn

from vitbench.case import Case
from vitbench.counter import Uncountable, counters
from vitbench.counting import findings
from vitbench.operators.global_ import Global
from vitbench.program import Program
from vitbench.shape import Shape

SHAPE = Shape(2, 5, 4, 32, 2)
needs_fvcore = pytest.mark.skipif(importlib.util.find_spec("fvcore") is None, reason="fvcore is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")  # fvcore traces


class Whole(nn.Module):
    """Attention in one operator of torch's, for which no counter has a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(32, 2, batch_first=True).eval().requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


class Inverse(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x) @ x


def test_an_operator_without_a_formula_is_named_and_not_silently_0() -> None:
    count = counters["dispatch"].count(Program(Whole(), (torch.randn(2, 5, 32),), training=False))
    assert count.macs == 0
    assert count.uncounted == ("aten._native_multi_head_attention",)


@pytest.mark.parametrize("counter", [pytest.param("fvcore", marks=needs_fvcore), "dispatch"])
def test_what_is_counted_beside_an_uncounted_operator_stays_exact(counter: str) -> None:
    count = counters[counter].count(Program(Inverse(), (torch.eye(8)[None],), training=False))
    assert count.macs == 8**3
    assert any("inv" in name for name in count.uncounted)


def test_an_absent_fvcore_is_a_reason_and_not_a_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    finding = {found.key: found for found in findings(Case(Global(), SHAPE, "naive"))}["fvcore"]
    assert finding.macs is None
    assert finding.reason is not None and "not installed" in finding.reason
    with pytest.raises(Uncountable, match="not installed"):
        counters["fvcore"].count(Program(Inverse(), (torch.eye(8)[None],), training=False))
