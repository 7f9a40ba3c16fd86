"""Cards by their datasheets: devices.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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
    found = {}
    for name, entry in tomllib.loads((files("vitbench") / FILE).read_text(encoding="utf-8")).items():
        try:
            found[name] = Card(name, **entry)
        except TypeError as error:
            raise Refusal(f"{FILE}, [{name}]: {error}; expected title, flops, bandwidth, source") from error
    return found


def card(name: str) -> Card:
    """By its name, however it is spelled: RTX 4090, rtx-4090, 4090. Raises Refusal where it is not known."""
    spelled = {_plain(one): one for one in cards()}
    known = name if name in cards() else spelled.get(_plain(name)) or spelled.get("rtx" + _plain(name))
    if known is None:
        key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "NAME"  # without quotes in TOML
        raise Refusal(
            f"unknown device {name!r}; known: here, {', '.join(cards())} (to add one, write [{key}] with title, "
            f"flops, bandwidth, memory, l2 and source into vitbench/{FILE})"
        )
    return cards()[known]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
