"""How long a card takes: each kernel bound by arithmetic or by memory, whichever takes longer, and by its launch.

    seconds = sum over kernels of max(2 macs (1 + ramp/inner) / (compute peak), bytes / (memory bandwidth)) + launch

after the roofline (Williams et al. 2009). Convolutions in groups are held against the float32 peak. To the bytes of a
convolution `layout` adds passes; a transposition reaches the `strided` share of the bandwidth; elements that one thread
walks one after another (Work.serial) take LATENCY each. Of the bytes of a launch a share of 1 / (1 + (bytes / l2)^2) is
found in the L2 cache, in CACHED of the time, as is what is looked up again and again (Work.looked). The constants are
what a card reaches of its datasheet, and what its libraries add; few, so that those fitted on some cards hold for
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vitbench.arithmetic import Number, larger
from vitbench.devices import Card
from vitbench.work import PRODUCTS, Work

GROUPED = ("grouped", "depthwise")
CONVOLUTIONS = ("convolution", *GROUPED)
CACHED = 0.2  # time of a byte in L2 over one in memory: 3 to 5 times the bandwidth, by clock and slices; not fitted
LATENCY = 0.25e-6  # seconds of one dependent access to memory, about 400 cycles; not fitted


class Constant(NamedTuple):
    """start: where a fit begins. low, high: plausible. datasheet: what it is where nothing was fitted."""

    name: str
    unit: str
    datasheet: float
    start: float
    low: float
    high: float
    meaning: str


CONSTANTS = (
    Constant("compute", "1", 1, 0.9, 0.2, 1.3, "share of the peak that long products reach; above 1 by boost clocks"),
    Constant("memory", "1", 1, 0.8, 0.3, 1.0, "share of the bandwidth that kernels reach"),
    Constant("launch_seconds", "s", 0, 5e-6, 1e-7, 1e-4, "between two kernels"),
    Constant("ramp", "1", 0, 20, 1, 500, "products summed into one element in the time of filling the pipeline"),
    Constant("attention_ramp", "1", 0, 10, 1, 300, "the same of fused attention, whose products sum over head_dim"),
    Constant("strided", "1", 1, 0.8, 0.1, 1.0, "share of that bandwidth that transpositions reach"),
    Constant("layout", "1", 0, 0.5, 1e-3, 5, "further passes over what a convolution of NCHW reads and writes"),
)
NAMES = tuple(constant.name for constant in CONSTANTS)
Constants = Mapping[str, float]
DATASHEET: Constants = {constant.name: constant.datasheet for constant in CONSTANTS}


def kernel_seconds(work: Work, card: Card, constants: Constants) -> Number:
    """Of one row of work, all its launches. Numbers of work may be arrays."""
    share = 1 / (1 + (work.bytes / larger(work.launches, 1) / card.l2) ** 2) if card.l2 else 0
    crossing = work.bytes * (1 - share * (1 - CACHED)) + work.looked * CACHED
    moving = crossing / (constants["memory"] * card.bandwidth * (constants["strided"] if work.strided else 1))
    if work.kind not in PRODUCTS:
        return moving + work.launches * constants["launch_seconds"] + work.serial * LATENCY
    dtype = "float32" if work.kind in GROUPED else work.dtype  # these gain little from tensor cores
    ramp = constants["attention_ramp" if work.kind == "attention" else "ramp"]
    computing = 2 * work.macs * (1 + ramp / work.inner) / (constants["compute"] * card.peak(dtype))
    laying = moving * constants["layout"] if work.kind in CONVOLUTIONS else 0
    return larger(computing, moving) + laying + work.launches * constants["launch_seconds"]


def seconds(works: Iterable[Work], card: Card, constants: Constants) -> Number:
    """Of one call."""
    return sum(kernel_seconds(work, card, constants) for work in works)
