"""What of a program is priced: its kernels and the bytes that it holds, from paper where they are there, else traced.

The suite's ViT and Swin on a card need no torch, so answer at once; tests hold these against traces, kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from vitbench.asked import Asked
from vitbench.largest import largest
from vitbench.ledger.attend import BACKENDS
from vitbench.ledger.program import Ledger, known, ledger, pixels
from vitbench.machine import Machine
from vitbench.model import Variant, models
from vitbench.refusal import Refusal
from vitbench.source import Image, Opened, is_builtin, refuse_size
from vitbench.step import Trace
from vitbench.work import Work

GUESSES = 3  # of the largest batch


class Seen(NamedTuple):
    """image: None where the source brings its own inputs. attends: whether it has softmax attention. peak_bytes: of the
    batch. largest_batch: images that fit the machine's memory, 0 if none. largest_image: pixels of a side of square
    ones that fit it at the batch, 0 if none. None: not told. notes: what was taken on trust. uncounted: it has
    operators that may hold products and have no formula.
    """

    works: Sequence[Work]
    image: Image | None
    attends: bool
    peak_bytes: int
    largest_batch: int | None
    largest_image: int | None = None
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
    memory, step = machine.memory_bytes, pixels(variant)

    def of(image: int, batch: int) -> Ledger:
        return ledger(variant, image, batch, asked.backend, dtype)

    def batch_bytes(batch: int) -> int:
        return int(of(image, batch).peak_bytes)

    def image_bytes(steps: int) -> int:
        return int(of(steps * step, asked.batch).peak_bytes)

    return Seen(
        works=of(image, asked.batch).works,
        image=(image, image),
        attends=True,
        peak_bytes=batch_bytes(asked.batch),
        largest_batch=None if memory is None else largest(batch_bytes, memory),
        largest_image=None if memory is None else step * largest(image_bytes, memory),
    )


def _traced(asked: Asked, machine: Machine, dtype: str) -> Seen:
    opened = asked.opened(machine.device, dtype)
    from vitbench.trace import trace

    def of(opened: Opened, batch: int) -> Trace:
        workspace = machine.workspace
        return trace(opened, batch, device=machine.device, dtype=dtype, mode=asked.mode, workspace=workspace)

    traced = run = of(opened, asked.batch)
    if asked.compiled:
        from vitbench.regions import compiled

        run = compiled(traced)

    def again(batch: int) -> Trace:
        return of(replace(asked, batch=batch).opened(machine.device, dtype), batch)

    largest = None if opened.image is None or machine.memory_bytes is None else _largest(traced, again, machine)
    assert traced.held is not None
    return Seen(
        works=list(run.works(tile=machine.tile)),
        image=opened.image,
        attends=traced.attends,
        peak_bytes=traced.held.peak(),
        largest_batch=largest,
        notes=traced.notes,
        uncounted=traced.uncounted,
    )


def _largest(traced: Trace, again: Callable[[int], Trace], machine: Machine) -> int | None:
    """Images that fit the memory. From a trace of another batch it is a guess, so traced itself, until it tells itself.

    None where a guess is refused. again: traces a batch; where that is slow (on the CPU) the guess is taken.
    """
    assert traced.held is not None and machine.memory_bytes is not None
    found = traced.held.largest(traced.batch, machine.memory_bytes)
    for _ in range(GUESSES if machine.on_paper else 0):
        if not found or found == traced.batch:
            break
        try:
            traced = again(found)
        except Refusal:
            return None
        assert traced.held is not None
        found = traced.held.largest(traced.batch, machine.memory_bytes)
    return found
