"""Cross-covariance attention against timm's XCiT with the same weights, and published figures."""

from __future__ import annotations

import pytest
import sympy
import torch

from vitbench.case import Case
from vitbench.operators.xca import Xca
from vitbench.program import build
from vitbench.shape import Shape


@pytest.mark.parametrize("prefix", [0, 1])
@pytest.mark.parametrize("backend", ["naive", "sdpa"])
def test_xca_is_timms(backend: str, prefix: int) -> None:
    xcit = pytest.importorskip("timm.models.xcit")
    program = build(Case(Xca(), Shape(2, 5, 4, 24, 3, prefix), backend, "float64"))
    theirs = xcit.XCA(24, num_heads=3, qkv_bias=True).double()
    state = program.module.state_dict()
    theirs.load_state_dict({**state, "temperature": state["temperature"].view(3, 1, 1)})
    expected = theirs(program.inputs[0]).detach()
    torch.testing.assert_close(program.call(), expected, rtol=0.0, atol=1e-12)


def test_macs_are_the_published_formula() -> None:
    n, d, h = sympy.symbols("N D H", integer=True, positive=True)
    macs = Xca().cost(Shape(1, n, 1, d, h)).total_macs
    assert sympy.expand(macs - (4 * n * d**2 + 2 * n * d**2 / h)) == 0


def test_a_layer_costs_what_hubhops_benchmark_prints() -> None:
    cost = Xca().cost(Shape(1, 14, 14, 768, 12))
    # README of HubHop/vit-attention-benchmark, row XCA: 481.69 M MACs, 2.36 M parameters.
    assert (f"{cost.total_macs / 1e6:.2f}", f"{cost.parameters / 1e6:.2f}") == ("481.69", "2.36")
