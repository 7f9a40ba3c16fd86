"""The largest batch, or the largest image, whose peak (`memory.py`) is within the bytes that there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from vitbench.memory import Memory, Setup
from vitbench.refusal import Refusal

STEP = 32  # pixels, where a model does not cut larger patches
LEAST_PATCH = 8  # of plain vision transformers; hierarchies begin with smaller ones
MOST_PIXELS = 16_384  # a side


def largest_batch(setup: Setup, memory_bytes: int) -> tuple[int, Memory]:
    """With what it takes; one image more takes more than there is. The batch of the setup plays no part.

    Raises Refusal where one image does not fit.
    """

    @cache
    def memory(batch: int) -> Memory:
        return replace(setup, batch=batch).memory()

    one = memory(1).peak_bytes
    if one > memory_bytes:
        raise Refusal(
            f"{setup.source}: {memory_bytes:,} bytes hold no batch of 1 ({setup.mode}), which takes {one:,}; "
            "give more memory or a smaller image"
        )
    batch = largest(lambda batch: memory(batch).peak_bytes, memory_bytes)
    return batch, memory(batch)


def largest(size: Callable[[int], int], limit: int) -> int:
    """The largest n whose size is within the limit, size(1) being so and size growing without end.

    Along tangents: where sizes lie on a line, as those of batches mostly do, n is found at once.
    """
    fits = 1
    while size(near := fits + 1) <= limit:
        slope = size(near) - size(fits)
        guess = near + (limit - size(near)) // slope if slope > 0 else 2 * near
        if size(guess) > limit:
            return _between(size, limit, near, guess)
        fits = guess
    return fits


def _between(size: Callable[[int], int], limit: int, fits: int, fails: int) -> int:
    """Where sizes grow ever faster, the tangent of one that fails meets the limit above the largest that fits."""
    while fails - fits > 1:
        slope = size(fails) - size(fails - 1)
        fails -= 1
        if (excess := size(fails) - limit) <= 0:
            return fails
        guess = fails - -(-excess // slope) if slope > 0 else (fits + fails) // 2
        guess = min(max(guess, fits + 1), fails - 1)
        if size(guess) <= limit:
            fits = guess
        else:
            fails = guess
    return fits


def largest_image(setup: Setup, memory_bytes: int, step: int | None = None) -> tuple[int, Memory]:
    """Pixels of a side, square, with what it takes. step: sides are multiples of it; None means the model's patches, or
    32 pixels. What the model refuses is passed over, and memory is taken to grow with the image.

    Raises Refusal where no image fits that the model takes.
    """
    opened = setup.opened()
    if opened.image is None:
        raise Refusal(f"{setup.source} brings its own inputs; expected a model that takes images")
    step = step or _patch(opened.module)

    @cache
    def memory(steps: int) -> Memory | None:
        try:
            return replace(setup, image=(steps * step, steps * step)).memory()
        except Refusal:
            return None

    def taken(start: int, end: int, by: int = 1) -> int | None:
        """The first that the model takes."""
        return next((steps for steps in range(start, end, by) if memory(steps)), None)

    fits, most = 0, MOST_PIXELS // step
    fails, guess = most + 1, max(opened.image) // step
    least: Memory | None = None
    while fails - fits > 1:
        near = taken(guess, fails) or taken(guess - 1, fits, -1)
        if near is None:
            break
        found = memory(near)
        assert found is not None
        if found.peak_bytes <= memory_bytes:
            fits = near
        else:
            fails, least = near, found
        guess = min(2 * fits, (fits + fails) // 2) if fits else fails // 2
        guess = min(max(guess, fits + 1), fails - 1)
    best = memory(fits) if fits else None
    if best is None:
        needed = f"{fails * step} pixels take {least.peak_bytes:,} bytes" if least else "it takes none"
        raise Refusal(
            f"{setup.source}: {memory_bytes:,} bytes hold no image at batch {setup.batch} ({setup.mode}); {needed}; "
            "give more memory or a smaller batch"
        )
    return fits * step, best


def _patch(module: Any) -> int:
    """Pixels of a side that its first convolution cuts out, if those are patches of a plain vision transformer."""
    first = next((one for one in module.modules() if hasattr(one, "kernel_size")), None)
    side = first.stride[0] if first is not None and first.kernel_size == first.stride else 0
    return side if side >= LEAST_PATCH else STEP
