"""What a choice is made for: a card by its datasheet, or this machine's CPU by its calibration. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from vitbench import cpu, gpu, processor
from vitbench.arithmetic import Number
from vitbench.calibrate.document import constants_of, newest_of
from vitbench.devices import card
from vitbench.knowledge import HELD, Knowledge, calibrated, known
from vitbench.ledger.tape import PRECISIONS, Kernels
from vitbench.refusal import Refusal
from vitbench.work import Work

HERE = "here"
RESULTS = Path(__file__).resolve().parents[2] / "results"


@dataclass(frozen=True)
class Target:
    """name: as it is asked for. memory_bytes: None where it is not known. seconds: of one call, of its works."""

    name: str
    title: str
    dtype: str
    memory_bytes: int | None
    knowledge: Knowledge
    kernels: Kernels
    seconds: Callable[[Iterable[Work]], Number]


def target(name: str, dtype: str | None = None, *, batches: bool = True, results: Path = RESULTS) -> Target:
    """name: a card of devices.toml, or here. dtype: of PRECISIONS; None: amp on a card, float32 on a CPU. batches: of
    as many images as are fastest, not of one.

    Raises Refusal for an unknown one, and for a CPU without a calibration.
    """
    if name == HERE:
        return _here(dtype or cpu.DTYPE, results)
    found, dtype = card(name), dtype or "amp"
    if dtype not in PRECISIONS:
        raise Refusal(f"unknown dtype {dtype!r}; known: {', '.join(PRECISIONS)}")
    found.peak(PRECISIONS[dtype].products)  # refuses what it does not know
    lacking = None if (dtype, batches) == (HELD[0], True) else "published are amp and large batches alone"
    knowledge = known(found.name, lacking=lacking)
    return Target(
        found.name,
        found.title,
        dtype,
        found.memory,
        knowledge,
        Kernels(),
        lambda works: gpu.seconds(works, found, knowledge.constants),
    )


def _here(dtype: str, results: Path) -> Target:
    import psutil

    if dtype != cpu.DTYPE:
        raise Refusal(f"dtype {dtype!r} is not predicted on a CPU; expected {cpu.DTYPE}, or a card")
    own = {"cpu": processor.name(), "cores": psutil.cpu_count(logical=False)}
    found = newest_of(results, own)
    if found is None:
        raise Refusal(
            f"no run of this CPU ({own['cpu']}, {own['cores']} cores) is calibrated under {results}: make bench "
            "DEVICE=cpu, then vitbench calibrate RUN; or name a card"
        )
    threads, constants = found["environment"]["threads"], constants_of(found)
    return Target(
        HERE,
        f"{found['environment']['cpu']}, {threads} threads",
        dtype,
        psutil.virtual_memory().total,
        calibrated(found),
        Kernels(cpu.TILE, sums=True),
        lambda works: cpu.seconds(works, constants),
    )
