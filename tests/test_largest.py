"""The largest batch that fits: one more does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from vitbench.largest import largest, largest_batch
from vitbench.memory import Setup
from vitbench.refusal import Refusal

VIT = Setup("timm:vit_tiny_patch16_224", (64, 64), mode="training", optimiser="adamw")
SMALL = Setup("deit_ti_16_distilled", (64, 64))
SIZES: dict[str, Callable[[int], int]] = {
    "a line": lambda n: 1000 + 37 * n,
    "flat at first": lambda n: max(5000, 100 * n),
    "ever steeper": lambda n: max(3 * n, 40 * n - 9000, 1000 * n - 700_000),
    "square": lambda n: n * n,
    "one is special": lambda n: 1000 * n - (900 if n == 1 else 0),
    "rounded": lambda n: 512 * -(-n * 700 // 512),
}


@pytest.mark.parametrize("limit", [5000, 5099, 5100, 41_234, 1_000_000])
@pytest.mark.parametrize("name", SIZES)
def test_largest(name: str, limit: int) -> None:
    size, asked = SIZES[name], set()

    def counted(n: int) -> int:
        asked.add(n)
        return size(n)

    found = largest(counted, limit)
    assert size(found) <= limit < size(found + 1)
    assert len(asked) <= 30
    if name == "a line":
        assert asked <= {1, 2, found, found + 1}


def test_nothing_fits() -> None:
    assert [largest(lambda n: 100 * n, limit) for limit in (99, 100)] == [0, 1]


@pytest.mark.parametrize(("setup", "memory_bytes"), [(VIT, 200_000_000), (SMALL, 40_000_000)])
def test_one_image_more_does_not_fit(setup: Setup, memory_bytes: int) -> None:
    batch, memory = largest_batch(setup, memory_bytes)
    assert memory == replace(setup, batch=batch).memory()
    assert memory.peak_bytes <= memory_bytes < replace(setup, batch=batch + 1).memory().peak_bytes


def test_no_image_fits() -> None:
    with pytest.raises(
        Refusal, match=r"1,000,000 bytes hold no batch of 1 \(training\), which takes \d\d,\d{3},\d{3};"
    ):
        largest_batch(VIT, 1_000_000)
