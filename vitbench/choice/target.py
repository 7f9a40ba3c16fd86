"""What a choice is made for: a card by its datasheet, or this machine's CPU by its calibration. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import NamedTuple

from vitbench import cpu, gpu, processor
from vitbench.arithmetic import Number
from vitbench.calibrate.document import FILE, Calibration, constants_of, read
from vitbench.devices import Card, card
from vitbench.ledger.tape import PRECISIONS, Kernels
from vitbench.refusal import Refusal
from vitbench.work import Work

HERE = "here"
RESULTS = Path(__file__).resolve().parents[2] / "results"


class Knowledge(NamedTuple):
    """level: what the constants rest on. interval: factors of the seconds that 9 of 10 times are within; None: none."""

    level: str
    constants: Mapping[str, float]
    interval: tuple[float, float] | None


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


def constants_for(_: Card) -> Knowledge:
    return Knowledge("start values", {one.name: one.start for one in gpu.CONSTANTS}, None)


def target(name: str, dtype: str | None = None, results: Path = RESULTS) -> Target:
    """name: a card of devices.toml, or here. dtype: of PRECISIONS; None: amp on a card, float32 on a CPU.

    Raises Refusal for an unknown one, and for a CPU without a calibration.
    """
    if name == HERE:
        return _here(dtype or cpu.DTYPE, results)
    found, dtype = card(name), dtype or "amp"
    if dtype not in PRECISIONS:
        raise Refusal(f"unknown dtype {dtype!r}; known: {', '.join(PRECISIONS)}")
    found.peak(PRECISIONS[dtype].products)  # refuses what it does not know
    knowledge = constants_for(found)
    return Target(
        name,
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
    found = _calibrated(processor.name(), psutil.cpu_count(logical=False), results)
    threads, constants = found["environment"]["threads"], constants_of(found)
    low, high = (exp(found["log_error_quantiles"][share]) for share in ("0.05", "0.95"))
    return Target(
        HERE,
        f"{found['environment']['cpu']}, {threads} threads",
        dtype,
        psutil.virtual_memory().total,
        Knowledge("calibrated", constants, (low, high)),
        Kernels(cpu.TILE, sums=True),
        lambda works: cpu.seconds(works, constants),
    )


def _calibrated(name: str, cores: int | None, results: Path) -> Calibration:
    """The newest of this CPU, those of own runs first."""
    for folder in (results, results / "reference"):
        for path in sorted(folder.glob(f"*/{FILE}"), key=lambda path: -path.stat().st_mtime):
            found = read(path.parent)
            if (found["environment"]["cpu"], found["environment"]["cores"]) == (name, cores):
                return found
    raise Refusal(
        f"no run of this CPU ({name}, {cores} cores) is calibrated under {results}: make bench DEVICE=cpu, then "
        "vitbench calibrate RUN; or name a card"
    )
