"""What a time is predicted for: a card by its datasheet, or the CPU that this runs on by its calibration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vitbench import cpu, gpu
from vitbench.calibrate.document import Calibration, newest_of
from vitbench.devices import Card, card, cards
from vitbench.knowledge import HELD, Knowledge, calibrated, known
from vitbench.ledger.tape import PRECISIONS
from vitbench.refusal import Refusal
from vitbench.work import Work

HERE = "here"
ROOT = Path(__file__).resolve().parents[1]
UNCACHED = "the size of its L2 cache is not known, so all is priced as moved by memory: small batches take less"
OVERSIGHT = "peak_bytes leave out what libraries take within operators, and memory that lies free between tensors"
Price = Callable[[Work], float]  # seconds of one row of work


class Way(NamedTuple):
    """How a program runs. family: of the model, as validation names it; None: another. attention: if it has any."""

    dtype: str
    mode: str
    compiled: bool
    family: str | None
    attention: bool


class Machine(NamedTuple):
    """name: as it is asked for. device: cuda or cpu, what programs are traced for. dtypes: the first is the default.

    on_paper: whether `ledger` tells its kernels and bytes. memory_bytes: None where it is not known. tile: of fused
    attention, as of Step.work. known: of programs of a way; raises Refusal where nothing is. price: by constants.
    workspace: of its operators, as of `trace`; None: not known. notes: what these leave out.
    """

    name: str
    title: str
    device: str
    dtypes: tuple[str, ...]
    on_paper: bool
    memory_bytes: int | None
    tile: int
    known: Callable[[Way], Knowledge]
    price: Callable[[Mapping[str, float]], Price]
    workspace: Callable[[Any, Any, Any], tuple[int, int]] | None = None
    notes: tuple[str, ...] = ()

    def within(self, memory_bytes: int | None) -> Machine:
        """With no more memory than that; None: with all of its own."""
        memory = min(filter(None, (memory_bytes, self.memory_bytes)), default=None)
        return self._replace(memory_bytes=memory)


def on_card(card: Card) -> Machine:
    def known_of(way: Way) -> Knowledge:
        lacking = None if (way.dtype, way.mode) == HELD else f"published are {' '.join(HELD)} alone"
        return known(card.name, compiled=way.compiled, family=way.family, attention=way.attention, lacking=lacking)

    return Machine(
        name=card.name,
        title=card.title,
        device="cuda",
        dtypes=tuple(PRECISIONS),
        on_paper=True,
        memory_bytes=card.memory,
        tile=1,
        known=known_of,
        price=lambda constants: lambda work: float(gpu.kernel_seconds(work, card, constants)),
        notes=(OVERSIGHT,) if card.l2 else (OVERSIGHT, UNCACHED),
    )


def on_cpu(title: str, memory_bytes: int | None, calibration: Calibration) -> Machine:
    def known_of(way: Way) -> Knowledge:
        if way.compiled:
            raise Refusal("compiled programs are not predicted on the CPU; expected no --compiled, or a card")
        return calibrated(calibration)

    return Machine(
        name=HERE,
        title=title,
        device="cpu",
        dtypes=(cpu.DTYPE,),
        on_paper=False,
        memory_bytes=memory_bytes,
        tile=cpu.TILE,
        known=known_of,
        price=lambda constants: lambda work: cpu.seconds([work], constants),
        workspace=_within,
    )


def _within(func: Any, args: Any, kwargs: Any) -> tuple[int, int]:
    from vitbench.measure.scratch import workspace

    return workspace(func, args, kwargs)


def machine(name: str | None, results: Path = ROOT / "results") -> Machine:
    """A card by its name in devices.toml, or the one here. None: the card here, if there is one.

    Raises Refusal for an unknown one, and where nothing is known of the one here.
    """
    if name not in (None, HERE):
        return on_card(card(str(name)))
    found = _card_here()
    if found is None and name is None:
        raise Refusal(f"torch sees no card here; expected --device {HERE} (this CPU), {', '.join(cards())}")
    if found is None:
        return cpu_here(results)
    titled = [one for one in cards().values() if _words(found) <= _words(one.title)]
    if titled:
        return on_card(min(titled, key=lambda one: len(_words(one.title))))  # a Max-Q names itself so
    return on_card(card(found))  # refuses it, and says how to add it


def _card_here() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _words(title: str) -> set[str]:
    """NVIDIA A100-SXM4-40GB and NVIDIA A100 SXM4 40 GB are one card."""
    joined = re.sub(r"(\d+) ?gb", r"\1gb", title.lower())
    return set(re.findall(r"\w+", joined)) - {"nvidia", "tesla", "hbm3"}


def cpu_here(results: Path) -> Machine:
    """By the newest calibration of this very CPU with as many threads. Raises Refusal where there is none."""
    import psutil

    from vitbench.measure.environment import processor

    own = processor()
    if (found := newest_of(results, own)) is not None:
        return on_cpu(f"{own['cpu']}, {own['threads']} threads", psutil.virtual_memory().total, found)
    raise Refusal(
        f"no run of this CPU ({', '.join(f'{key} {value}' for key, value in own.items())}) is calibrated under "
        f"{results}: make bench DEVICE=cpu, then vitbench calibrate RUN; or name a card: {', '.join(cards())}"
    )
