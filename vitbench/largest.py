"""The largest size, such as a batch, whose peak is within the bytes that there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from vitbench.memory import Memory, Setup
from vitbench.refusal import Refusal


def largest_batch(setup: Setup, memory_bytes: int) -> tuple[int, Memory]:
    """With what it takes; one image more takes more than there is. The batch of the setup plays no part.

    Raises Refusal where one image does not fit.
    """

    @cache
    def memory(batch: int) -> Memory:
        return replace(setup, batch=batch).memory()

    batch = largest(lambda batch: memory(batch).peak_bytes, memory_bytes)
    if not batch:
        raise Refusal(
            f"{setup.source}: {memory_bytes:,} bytes hold no batch of 1 ({setup.mode}), which takes "
            f"{memory(1).peak_bytes:,}; give more memory or a smaller image"
        )
    return batch, memory(batch)


def largest(size: Callable[[int], int], limit: int) -> int:
    """The largest n whose size is within the limit, size growing without end; 0 where size(1) is beyond.

    Along tangents: where sizes lie on a line, as those of batches mostly do, n is found at once.
    """
    fits = 1
    if size(1) > limit:
        return 0
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
