"""What of a program is priced: its kernels and the bytes that it holds, from paper where they are there, else traced.

The suite's ViT and Swin on a card need no torch, so answer at once; tests hold these against traces, kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from vitbench.asked import Asked
from vitbench.ledger.attend import BACKENDS
from vitbench.ledger.program import known, ledger, pixels
from vitbench.machine import Machine
from vitbench.model import Variant, models
from vitbench.refusal import Refusal
from vitbench.source import Image, is_builtin, refuse_size
from vitbench.step import Trace
from vitbench.work import Work

GUESSES = 3  # of the largest batch


class Seen(NamedTuple):
    """image: None where the source brings its own inputs. attends: whether it has softmax attention. peak_bytes: of the
    batch. largest: images that fit the machine's memory; None: not told. notes: what was taken on trust. uncounted: it
    has operators that may hold products and have no formula.
    """

    works: Sequence[Work]
    image: Image | None
    attends: bool
    peak_bytes: int
    largest: Callable[[], int | None]
    notes: tuple[str, ...] = ()
    uncounted: bool = False


def seen(asked: Asked, machine: Machine, dtype: str) -> Seen:
    """Raises Refusal where the source cannot be made or traced."""
    variant = asked.varied(models[asked.source]) if is_builtin(asked.source) else None
    if variant is not None and (image := _written(asked, machine, variant)):
        return _on_paper(asked, machine, dtype, variant, image)
    return _traced(asked, machine, dtype)


def _written(asked: Asked, machine: Machine, variant: Variant) -> int | None:
    """The side of the images, where the program is on paper."""
    height, width = asked.image or (variant.image, variant.image)
    eager = asked.backend in BACKENDS and asked.mode == "inference" and not asked.compiled
    there = machine.on_paper and eager and known(variant) and height == width and height % pixels(variant) == 0
    return height if there and not variant.model.refused(variant.shape(height, asked.batch), "model") else None


def _on_paper(asked: Asked, machine: Machine, dtype: str, variant: Variant, image: int) -> Seen:
    refuse_size((image, image), asked.batch)

    def peak(batch: int) -> int:
        return int(ledger(variant, image, batch, asked.backend, dtype).peak_bytes)

    def largest() -> int | None:
        from vitbench.largest import largest

        memory = machine.memory_bytes
        if memory is None:
            return None
        return largest(peak, memory) if peak(1) <= memory else 0

    works = ledger(variant, image, asked.batch, asked.backend, dtype).works
    return Seen(works, (image, image), True, peak(asked.batch), largest)


def _traced(asked: Asked, machine: Machine, dtype: str) -> Seen:
    opened = asked.opened(machine.device, dtype)
    from vitbench.trace import trace

    def of(batch: int) -> Trace:
        opened = replace(asked, batch=batch).opened(machine.device, dtype)
        return trace(opened, batch, device=machine.device, dtype=dtype, mode=asked.mode)

    def largest() -> int | None:
        """From a trace of another batch it is a guess, so it is traced itself, until it tells itself."""
        batch, found = asked.batch, machine.largest(traced)
        for _ in range(GUESSES):
            if not found or found == batch:
                break
            try:
                batch, found = found, machine.largest(of(found))
            except Refusal:
                return None
        return found

    traced = run = trace(opened, asked.batch, device=machine.device, dtype=dtype, mode=asked.mode)
    if asked.compiled:
        from vitbench.regions import compiled

        run = compiled(traced)
    works, peak = list(run.works(tile=machine.tile)), machine.peak(opened, traced)
    return Seen(works, opened.image, traced.attends, peak, largest, traced.notes, traced.uncounted)
