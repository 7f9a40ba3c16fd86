"""What operators of the CPU take within themselves: tiles of attention in closed form, convolutions as they are run."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
import torch

from vitbench.measure import scratch
from vitbench.measure.memory import allocations

aten = torch.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def within(func: Any, *args: Any) -> int:
    """Measured: the peak of one call, less what it gives."""
    results: list[Any] = []
    taken = allocations(lambda: results.append(func(*args)))
    return max(accumulate(taken)) - sum(one.untyped_storage().nbytes() for one in results[0] if one is not None)


@pytest.mark.parametrize("tokens", [7, 49, 197, 577, 800])
def test_tiles(tokens: int) -> None:
    q, k, v = (torch.ones(2, tokens, 3, 16).transpose(1, 2) for _ in range(3))
    out, sums = FORWARD(q, k, v)
    assert sum(scratch.workspace(FORWARD, (q, k, v), {})) == within(FORWARD, q, k, v)
    backward = (out, q, k, v, out, sums, 0.0, False)
    assert sum(scratch.workspace(BACKWARD, backward, {})) == within(BACKWARD, *backward)


def gradients_of(batch: int, side: int) -> tuple[Any, ...]:
    """Of a depthwise convolution of channels that lie last, as ConvNeXt has them."""
    images = [torch.ones(batch, side, side, 32).permute(0, 3, 1, 2) for _ in range(2)]
    return (*images, torch.ones(32, 1, 7, 7), [32], [1, 1], [3, 3], [1, 1], False, [0, 0], 32, [True, True, True])


def test_a_convolution_is_asked_for_what_it_takes() -> None:
    args = gradients_of(2, 20)
    taken = within(scratch.DIFFERENTIATED, *args)
    assert sum(scratch.workspace(scratch.DIFFERENTIATED, args, {})) == taken


@pytest.mark.parametrize(("batch", "side"), [(64, 16), (2, 160), (1, 400)])
def test_beyond_what_is_run_it_grows_along_a_line(batch: int, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(batch, 8, side, side)
    args = (x, torch.ones(16, 8, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    taken = within(lambda *given: (scratch.CONVOLVED(*given),), *args)
    monkeypatch.setattr(scratch, "MOST", x.numel() // 2)
    assert sum(scratch.workspace(scratch.CONVOLVED, args, {})) == pytest.approx(taken, rel=0.02)


def test_what_grows_with_the_batch() -> None:
    q, k, v = (torch.ones(2, 49, 3, 16).transpose(1, 2) for _ in range(3))
    assert scratch.workspace(FORWARD, (q, k, v), {})[1] == 0
    args = torch.ones(2, 8, 64, 64), torch.ones(16, 8, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    fixed, growing = scratch.workspace(scratch.CONVOLVED, args, {})
    larger = within(lambda *given: (scratch.CONVOLVED(*given),), torch.ones(6, 8, 64, 64), *args[1:])
    assert fixed + 3 * growing == pytest.approx(larger, rel=0.02)


def test_others_take_nothing() -> None:
    assert sum(scratch.workspace(aten.mm.default, (torch.ones(2, 2), torch.ones(2, 2)), {})) == 0
