"""The largest batch and image that fit: one more does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from vitbench.exact.live import Peak
from vitbench.largest import largest, largest_batch, largest_image
from vitbench.memory import Device, Setup
from vitbench.refusal import Refusal
from vitbench.source import Opened

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


@pytest.mark.parametrize("memory_bytes", [30_000_000])
def test_one_patch_more_does_not_fit(memory_bytes: int) -> None:
    setup = Setup("timm:vit_tiny_patch16_224", batch=3)
    side, memory = largest_image(setup, memory_bytes)
    assert side % 16 == 0
    assert memory.peak_bytes <= memory_bytes < replace(setup, image=(side + 16,) * 2).memory().peak_bytes


def pixels(opened: Opened, _: bool) -> Peak:
    """A byte each; sides of 96 and 128 are refused."""
    side = opened.inputs[0].shape[-1]
    if side in (96, 128):
        raise ValueError("not that")
    return Peak(side * side, 0)


@pytest.mark.parametrize(("room", "side"), [(64 * 64, 64), (128 * 128, 64), (160 * 160, 160), (1000 * 1000, 992)])
def test_what_is_refused_is_passed_over(room: int, side: int) -> None:
    setup = Setup("convnext_t", device=Device(pixels, together=False))
    parameters = setup.memory().parameters
    assert largest_image(setup, parameters + room + 3 * 4 * side * side)[0] == side


def test_no_size_fits() -> None:
    with pytest.raises(Refusal, match=r"bytes hold no image at batch 1 .*; 32 pixels take"):
        largest_image(Setup("convnext_t"), 1_000_000)
    with pytest.raises(Refusal, match="brings its own inputs; expected a model that takes images"):
        largest_image(Setup("sources:attention"), 1_000_000)
