"""What a program hands to a device, kernel by kernel: what its time is predicted from."""

from __future__ import annotations

from typing import NamedTuple

from vitbench.arithmetic import Number

PRODUCTS = ("product", "convolution", "grouped", "depthwise", "attention")
REGION = "region"
MEMORY = ("pointwise", "reduction", "copy", "cast", REGION)
KINDS = PRODUCTS + MEMORY


class Work(NamedTuple):
    """One kernel, or several alike. Numbers may be arrays (many shapes at once).

    operator: torch's name. kind: product (of matrices), convolution (dense), grouped, depthwise, attention (fused: no
    scores cross memory), pointwise, reduction (softmax, norm, mean), copy (cat, roll, contiguous), cast (to another
    dtype), region (pointwise and reductions that a compiler merged). dtype: of the arithmetic. macs: all in all. read,
    written: bytes that must cross memory, all in all. inner: products summed into one element of the result; 0 where
    there are none. launches: kernels. strided: it reads along another axis than it writes, a transposition.
    serial: elements that one thread walks one after another, where a kernel has too few threads to hide the memory's
    latency; 0 elsewhere. looked: bytes that are read again and again, and so found in the cache.
    """

    operator: str
    kind: str
    dtype: str
    macs: Number
    read: Number
    written: Number
    inner: Number = 0
    launches: Number = 1
    strided: bool = False
    serial: Number = 0
    looked: Number = 0

    @property
    def bytes(self) -> Number:
        return self.read + self.written
