"""Cards by their datasheets: devices.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf

from vitbench.refusal import Refusal

FILE = "devices.toml"


@dataclass(frozen=True)
class Card:
    """flops: dense peak, FLOP/s, by dtype. bandwidth: bytes/s. memory, l2: bytes; None: not known."""

    name: str
    title: str
    flops: Mapping[str, float]
    bandwidth: float
    source: str
    memory: int | None = None
    l2: int | None = None

    def __post_init__(self) -> None:
        figures = {**self.flops, "bandwidth": self.bandwidth, "memory": self.memory, "l2": self.l2}
        for name, figure in figures.items():
            if figure is not None and not (isinstance(figure, int | float) and 0 < figure < inf):
                raise ValueError(f"{name} is {figure!r}, not a number above 0")

    def peak(self, dtype: str) -> float:
        """FLOP/s. Raises Refusal where the datasheet has none: nothing is guessed."""
        if dtype not in self.flops:
            known = ", ".join(self.flops)
            raise Refusal(
                f"{self.title} has no known peak in {dtype}; known: {known} (add one to {FILE}, with its source)"
            )
        return self.flops[dtype]


@cache
def cards() -> Mapping[str, Card]:
    """All known, by name. Raises Refusal for an entry that is none."""
    try:
        entries = tomllib.loads((files("vitbench") / FILE).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Refusal(f"{FILE} is no TOML: {error}") from error
    found: dict[str, Card] = {}
    for name, entry in entries.items():
        try:
            found[name] = Card(name, **entry)
        except (TypeError, ValueError) as error:
            wants = "title, flops, bandwidth, source, and memory and l2 where they are known"
            raise Refusal(f"{FILE}, [{name}]: {error}; expected {wants}") from error
    if len({_plain(name) for name in found}) < len(found):
        raise Refusal(f"{FILE}: two of {', '.join(found)} are spelled alike; expected one entry for a card")
    return found


def card(name: str) -> Card:
    """By its name, however it is spelled: rtx-4090, GeForce RTX 4090, 4090. Raises Refusal where it is not known."""
    spelled, plain = {_plain(one): one for one in cards()}, _plain(name)
    known = (spelled.get(plain) or spelled.get("rtx" + plain)) if plain else None
    if known is None:
        key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "NAME"  # without quotes in TOML
        raise Refusal(
            f"unknown device {name!r}; known: here, {', '.join(cards())} (to add one, write [{key}] with title, "
            f"flops, bandwidth, memory, l2 and source into vitbench/{FILE})"
        )
    return cards()[known]


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[\s_-]", "", name.lower())
