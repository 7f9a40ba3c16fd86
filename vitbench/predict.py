"""What a model will take: seconds, images a second and peak bytes, operator by operator, before anything runs.

A time is predicted from a trace on fake tensors, or from paper, so no GPU is needed. What is NOT in it: the host's own
time, where it launches more slowly than the card runs; loading data; what other programs do to the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from vitbench.asked import Asked
from vitbench.machine import Machine, Price, Way
from vitbench.refusal import Refusal
from vitbench.seen import seen
from vitbench.source import Image
from vitbench.work import Work

SCHEMA = 1
UNCOUNTED = "no interval: it has operators that no formula counts (see notes)"
LAUNCHED = 0.2  # share of the launches above which a time is of a kind that was not validated


@dataclass(frozen=True)
class Share:
    """All calls of an operator in a dtype. bound: what alone would take longest: arithmetic, memory or launches."""

    operator: str
    kind: str
    dtype: str
    calls: int
    macs: int
    bytes: int
    seconds: float
    share: float
    bound: str


@dataclass(frozen=True)
class Prediction:
    """Of one batch.

    interval: seconds that hold nine of ten such times; None: not earned. knowledge: its level. words: a sentence on
    constants and interval. images_per_second, largest_batch: None where the source brings its own inputs. fits: None
    where the memory is not known, and so are largest_batch and largest_image (pixels of a side, of the batch; None also
    where the program is not on paper). operators: those that take most first.
    """

    source: str
    image: Image | None
    batch: int
    device: str
    device_name: str
    dtype: str
    mode: str
    backend: str
    compiled: bool
    seconds: float
    images_per_second: float | None
    interval: tuple[float, float] | None
    knowledge: str
    words: str
    constants: dict[str, float]
    peak_bytes: int
    memory_bytes: int | None
    fits: bool | None
    largest_batch: int | None
    largest_image: int | None
    operators: tuple[Share, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As docs/json.md says."""
        return {"schema": SCHEMA, **asdict(self)}


def predict(asked: Asked, machine: Machine) -> Prediction:
    """Raises Refusal for what cannot be asked of the machine, and for a source that cannot be traced."""
    dtype = asked.dtype_on(machine)
    program = seen(asked, machine, dtype)
    knowledge = machine.known(Way(dtype, asked.mode, asked.compiled, asked.family(), program.attends))
    operators = _operators(program.works, machine.price(knowledge.constants))
    if not operators:
        raise Refusal(f"{asked.source} runs no operator that takes time; expected a module that computes something")
    seconds = sum(one.seconds for one in operators)
    unlike = (UNCOUNTED if program.uncounted else _launched(operators)) if knowledge.interval else None
    factors = None if unlike else knowledge.interval
    own, memory = program.image is None, machine.memory_bytes
    peak, notes = program.peak_bytes, [*program.notes, *machine.notes]
    if asked.compiled:
        notes.append("peak_bytes are those of the program as written; a compiled one keeps fewer tensors")
    return Prediction(
        source=asked.source,
        image=program.image,
        batch=asked.batch,
        device=machine.name,
        device_name=machine.title,
        dtype=dtype,
        mode=asked.mode,
        backend=asked.backend,
        compiled=asked.compiled,
        seconds=seconds,
        images_per_second=None if own else asked.batch / seconds,
        interval=(seconds * factors[0], seconds * factors[1]) if factors else None,
        knowledge=knowledge.level,
        words=f"{knowledge.words.partition('; ')[0]}; {unlike}" if unlike else knowledge.words,
        constants=dict(knowledge.constants),
        peak_bytes=peak,
        memory_bytes=memory,
        fits=None if memory is None else peak <= memory,
        largest_batch=None if own else program.largest_batch,
        largest_image=program.largest_image,
        operators=operators,
        notes=tuple(notes),
    )


def _operators(works: Iterable[Work], price: Price) -> tuple[Share, ...]:
    groups: dict[tuple[str, str, str], list[Work]] = {}
    for work in works:
        groups.setdefault((work.operator, work.kind, work.dtype), []).append(work)
    seconds = {key: sum(map(price, rows)) for key, rows in groups.items()}
    total = sum(seconds.values())
    shares = [
        Share(
            *key,
            calls=sum(int(work.launches) for work in rows),
            macs=sum(int(work.macs) for work in rows),
            bytes=sum(int(work.bytes) for work in rows),
            seconds=seconds[key],
            share=seconds[key] / total if total else 0,
            bound=_bound(rows, price),
        )
        for key, rows in groups.items()
    ]
    return tuple(sorted(shares, key=lambda one: -one.seconds))


def _bound(rows: Iterable[Work], price: Price) -> str:
    """What alone would take longest, launches apart."""
    alone = dict.fromkeys(("arithmetic", "memory", "launches"), 0.0)
    for work in rows:
        still = work._replace(read=0, written=0, serial=0, looked=0)
        unlike = price(still._replace(macs=0))
        alone["arithmetic"] += price(still) - unlike
        alone["memory"] += price(work._replace(macs=0)) - unlike
        alone["launches"] += unlike
    return max(alone, key=lambda name: alone[name])


def _launched(operators: Iterable[Share]) -> str | None:
    share = sum(one.share for one in operators if one.bound == "launches")
    if share <= LAUNCHED:
        return None
    return f"no interval: launches bind operators of {share:.0%} of it, and such times were not held out"
