"""The subcommand `vitbench predict`, its page for a terminal, and its JSON."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from vitbench.asked import Asked
from vitbench.choice.budget import bytes_of
from vitbench.ledger.tape import PRECISIONS
from vitbench.machine import machine
from vitbench.predict import Prediction, predict
from vitbench.source import image_of

SHOWN = 12  # operators


def predict_command(options: argparse.Namespace) -> int:
    """Prints the prediction."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which measures workspaces, talks to stderr
    with _uncollected():
        asked = Asked(
            source=options.source,
            image=image_of(options.image),
            batch=options.batch,
            dtype=options.dtype,
            mode=options.mode,
            backend=options.backend,
            compiled=options.compiled,
            window=options.window,
            patch=options.patch,
        )
        memory = None if options.memory is None else bytes_of(options.memory)
        found = predict(asked, machine(options.device).within(memory))
    print(json.dumps(found.to_dict(), indent=1) if options.json else "\n".join(lines(found)))
    return 0


@contextmanager
def _uncollected() -> Iterator[None]:
    """Inside, and as the process ends, no garbage is looked for: among all of torch and timm, that takes seconds."""
    enabled = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def lines(found: Prediction) -> list[str]:
    """For people: every figure with its name and unit."""
    images = f"{found.images_per_second:,.1f}" if found.images_per_second else "-"
    named = {
        "seconds": f"{_seconds(found.seconds)}   {_interval(found)}",
        "images per second": images,
        "knowledge": f"{found.knowledge}: {found.words}",
        "peak bytes": f"{found.peak_bytes:,}   {_room(found)}",
        "largest batch": _most(found.largest_batch, "", ""),
        "largest image": _most(found.largest_image, " pixels a side", f" at batch {found.batch:,}"),
    }
    return [
        _heading(found),
        "",
        *(f"{name:<20}{value}" for name, value in named.items()),
        "",
        *_table(found),
        *(["", *(f"note: {note}" for note in found.notes)] if found.notes else []),
    ]


def _heading(found: Prediction) -> str:
    images = "its own inputs"
    if found.image:
        images = f"{found.batch} image{'s' * (found.batch > 1)} of {found.image[0]}x{found.image[1]}"
    how = f"{_dtype(found.dtype)}, {found.backend}{', compiled' * found.compiled}"
    return f"{found.source}, {images}, {found.mode}, {how}, on {found.device_name}: predicted"


def _dtype(name: str) -> str:
    """amp (float16 products, float32 weights)."""
    stored, products = PRECISIONS[name]
    return name if stored == products else f"{name} ({products} products, {stored} weights)"


def _interval(found: Prediction) -> str:
    if found.interval is None:
        return "no interval"
    low, high = map(_seconds, found.interval)
    return f"{low} to {high} in 9 of 10 times of its kind"


def _most(size: int | None, unit: str, where: str) -> str:
    """1,024 pixels a side   that fits at batch 8."""
    if size is None:
        return "-"
    return f"{size:,}{unit}   that fits{where}" if size else "none fits"


def _room(found: Prediction) -> str:
    if found.memory_bytes is None:
        return "the device's memory is not known"
    return f"of {found.memory_bytes:,}: {'fits' if found.fits else 'does not fit'}"


def _table(found: Prediction) -> Iterator[str]:
    shown, rest = found.operators[:SHOWN], found.operators[SHOWN:]
    width = max(len("operator"), *(len(one.operator) for one in shown)) + 2
    yield f"{'operator':<{width}}{'kind':<13}{'dtype':<10}{'calls':>6}{'seconds':>12}{'share':>8}  bound by"
    for one in shown:
        name = f"{one.operator:<{width}}{one.kind:<13}{one.dtype:<10}"
        yield f"{name}{one.calls:>6,}{_seconds(one.seconds):>12}{one.share:>8.1%}  {one.bound}"
    if rest:
        calls, seconds = sum(one.calls for one in rest), sum(one.seconds for one in rest)
        share = sum(one.share for one in rest)
        name = f"{f'{len(rest)} others':<{width + 23}}"
        yield f"{name}{calls:>6,}{_seconds(seconds):>12}{share:>8.1%}"


def _seconds(value: float) -> str:
    """12.3 ms."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= unit:
            return f"{value / unit:.3g} {name}" if value < 1000 * unit else f"{value / unit:,.0f} {name}"
    return f"{value * 1e6:.3g} µs"
