"""A budget, and the words in which it is given: 20ms, 8GB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from vitbench.refusal import Refusal

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
BYTES = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """latency: seconds of one call. memory: bytes at the peak of one. None: there is no such bound."""

    latency: float | None = None
    memory: int | None = None


def seconds_of(text: str) -> float:
    """20ms, 0.02s, 1.5 s. Raises Refusal."""
    return _amount("latency", text, SECONDS, "20ms or 0.02s")


def bytes_of(text: str) -> int:
    """8GB (8e9), 8GiB (8 x 2^30), 500MB. Raises Refusal."""
    size = int(_amount("memory", text, BYTES, "8GB, 8GiB or 500MB"))
    if not size:
        raise Refusal(f"memory {text!r} is less than a byte; expected such as 8GB, 8GiB or 500MB")
    return size


def _amount(what: str, text: str, units: Mapping[str, float], such: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?\s*([A-Za-z]+)\s*", text, re.ASCII)
    value = float(found[1] + (found[2] or "")) * units[found[3]] if found and found[3] in units else 0
    if not value or not isfinite(value):
        raise Refusal(f"{what} {text!r} is no amount above 0 with a unit ({', '.join(units)}); expected such as {such}")
    return value
