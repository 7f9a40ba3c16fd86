"""How long a CPU takes: what each operator demands, over what this machine gives in a second.

A processor fetches, computes and stores in one stream of instructions, so the times of these add up; nothing hides
behind anything else. seconds = sum over CONSTANTS of demand / rate. So a program is one row of demands, and constants
follow from measured rows (`calibrate`).

The constants are those of the machine as it runs these operators, not of its datasheet. What is NOT in them: operators
in other dtypes than float32, compiled programs, memory that is paged in or out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vitbench.arithmetic import Number
from vitbench.work import Work

DTYPE = "float32"
TILE = 16  # queries and keys of fused attention: lanes of float32 in a vector register (AVX-512)
CACHED_BYTES = 16 << 20  # read and written by an operator up to which its tensors are found in the caches
# Rows and single elements are taken from anywhere, some bytes at a time.
GATHERS = {"index", "index_select", "index_put", "gather", "embedding", "grid_sampler_2d"}
# ATen's safe softmax is a softmax, then looks for rows that attend nowhere: the bytes of all, over those of the first.
PASSES = {"_safe_softmax": 2.75}


class Constant(NamedTuple):
    """unit: of the value. start: where a fit begins. low, high: plausible, from slow cores to a large server."""

    name: str
    unit: str
    start: float
    low: float
    high: float
    meaning: str


CONSTANTS = (
    Constant("macs_per_second", "MAC/s", 1e11, 5e9, 1e13, "products of matrices and convolutions"),
    Constant("exponentials_per_second", "1/s", 3e9, 1e8, 5e11, "softmax inside fused attention, by query-key pairs"),
    Constant("bytes_per_second", "B/s", 1e10, 1e9, 5e11, "read and written by operators larger than the caches"),
    Constant("cached_bytes_per_second", "B/s", 2e10, 2e9, 5e12, "read and written by smaller operators"),
    Constant("gathered_bytes_per_second", "B/s", 2e9, 1e8, 2e11, "read and written by operators that index"),
    Constant("launch_seconds", "s", 1e-5, 1e-6, 2e-4, "starting an operator: Python, dispatch, waking the threads"),
)
NAMES = tuple(constant.name for constant in CONSTANTS)

Constants = Mapping[str, float]  # by name


def prices(constants: Constants) -> tuple[float, ...]:
    """Seconds of one of each demand, in the order of CONSTANTS."""
    return tuple(constants[one.name] if one.unit == "s" else 1 / constants[one.name] for one in CONSTANTS)


def demand(works: Iterable[Work]) -> tuple[Number, ...]:
    """Of all of them: MACs, exponentials, bytes from memory, from the caches, gathered; launches.

    works: with attention in whole tiles of TILE; their numbers may be arrays.
    """
    total: dict[str, Number] = dict.fromkeys(NAMES, 0.0)
    for work in works:
        total["macs_per_second"] = total["macs_per_second"] + work.macs
        if work.kind == "attention":
            pairs = work.macs / (2 * work.inner)  # each is a scalar product and a sum
            total["exponentials_per_second"] = total["exponentials_per_second"] + pairs
        moved = work.bytes * PASSES.get(work.operator, 1)
        for source, share in _sources(work).items():
            total[source] = total[source] + moved * share
        total["launch_seconds"] = total["launch_seconds"] + work.launches
    return tuple(total.values())


def _sources(work: Work) -> dict[str, Number]:
    """Where its bytes are found: shares of them."""
    if work.operator.rstrip("_") in GATHERS:
        return {"gathered_bytes_per_second": 1}
    cached = 1 * (work.bytes <= CACHED_BYTES * work.launches)
    return {"cached_bytes_per_second": cached, "bytes_per_second": 1 - cached}


def seconds(works: Iterable[Work], constants: Constants) -> Number:
    """Of one call. works: as of demand."""
    return sum(amount * price for amount, price in zip(demand(works), prices(constants), strict=True))
