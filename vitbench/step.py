"""What a program did, operator by operator, as a trace keeps it; and the work that each hands to a device.

Plain data: a trace of one batch gives the work of any other, for what follows from the inputs grows with the batch and
what follows from weights alone does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from vitbench.work import MEMORY, REGION, Work

BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


# On CUDA these have a thread for each pixel of the result, which walks through images and channels, unless neighbours
# along the axis of channels are neighbours in memory.
SERIAL = {"upsample_bilinear2d", "upsample_bicubic2d"}
SOFTMAX = {"_softmax", "_safe_softmax"}
CHANNELS = 1  # the axis of (B, C, H, W)


class Part(NamedTuple):
    """A tensor that an operator took or gave. data: it follows from the inputs.

    storage: a number that views share. offset: of its first element there.
    """

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    data: bool

    @property
    def bytes(self) -> int:
        """Of its own elements, each once: what is repeated by a stride of 0 is stored once."""
        own = (size for size, stride in zip(self.shape, self.strides, strict=True) if stride or not size)
        return prod(own) * BYTES[self.dtype]

    @property
    def dense(self) -> bool:
        """Whether its elements lie one after another, in the order of its axes."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    @property
    def fastest(self) -> int | None:
        """The last axis along which neighbours are neighbours in memory; None if there is none."""
        axes = [n for n, (size, step) in enumerate(zip(self.shape, self.strides, strict=True)) if step == 1 < size]
        return axes[-1] if axes else None


class Step(NamedTuple):
    """One operator that is no view. kind: as of Work. given, made: what it reads and writes.

    macs: of the batch that was traced. inner: products summed into one element. each: it runs a kernel for each
    image, the first axis of what it reads. looked: bytes that a region looks up again and again, of that batch.
    """

    operator: str
    kind: str
    dtype: str
    macs: int
    inner: int
    given: tuple[Part, ...]
    made: tuple[Part, ...]
    each: bool = False
    looked: int = 0

    @property
    def data(self) -> bool:
        """Whether it follows from the inputs, so grows with the batch."""
        return any(part.data for part in self.made)

    @property
    def strided(self) -> bool:
        """Whether what it reads lies along another axis than what it writes."""
        out = self.made[0]
        return (
            self.kind in MEMORY
            and self.kind != REGION
            and any(one.data and one.shape == out.shape and one.fastest != out.fastest for one in self.given)
        )

    @property
    def serial(self) -> bool:
        """Whether it runs a kernel of SERIAL."""
        return self.operator in SERIAL and self.kind != REGION and self.given[0].fastest != CHANNELS

    def work(self, scale: float = 1, tile: int = 1) -> Work:
        """On a batch that many times the traced one.

        tile: fused attention computes whole tiles of so many queries and keys; what is beyond the last ones is among
        its MACs.
        """
        read, written = (
            sum(part.bytes * (scale if part.data else 1) for part in parts) for parts in (self.given, self.made)
        )
        macs = self.macs * (scale if self.data else 1) * (_whole(self.given, tile) if self.kind == "attention" else 1)
        return Work(
            self.operator,
            self.kind,
            self.dtype,
            macs,
            read,
            written,
            self.inner,
            launches=self.given[0].shape[0] * (scale if self.data else 1) if self.each else 1,
            strided=self.strided,
            serial=prod(self.given[0].shape[:2]) * scale if self.serial else 0,
            looked=self.looked * scale,
        )


class Held(NamedTuple):
    """Bytes of a call. parameter_bytes: of weights and buffers. input_bytes: of the inputs.

    moments: held above these at once: what does not grow with the batch (casts of weights, their gradients), and what
    does; those moments of which none other holds more of both. gradient_bytes: of weights, held where most is held at
    the batch that was traced. Space that operators take within themselves is in it as far as the trace was told of it.
    """

    parameter_bytes: int
    input_bytes: int
    moments: tuple[tuple[int, int], ...]
    gradient_bytes: int = 0

    @property
    def call_bytes(self) -> int:
        """Most above weights, buffers and inputs, of the traced batch."""
        return max((fixed + growing for fixed, growing in self.moments), default=0)

    def peak(self, scale: float = 1) -> int:
        """Of a batch that many times the traced one."""
        most = max((fixed + scale * growing for fixed, growing in self.moments), default=0)
        return ceil(self.parameter_bytes + scale * self.input_bytes + most)

    def largest(self, batch: int, memory_bytes: int) -> int:
        """Images whose peak is within the bytes, 0 if none. batch: images traced."""
        room = memory_bytes - self.parameter_bytes
        rates = [(room - fixed) * batch // (self.input_bytes + growing) for fixed, growing in self.moments]
        return max(0, min(rates, default=0))


@dataclass(frozen=True)
class Trace:
    """One call of a model, or forward and backward of one. batch: images that it was traced with.

    activation_bytes: held at the peak above weights, buffers, inputs and (in training) the gradients of weights.
    notes: what was taken on trust. uncounted: it has operators that may hold products and have no formula.
    """

    source: str
    image: tuple[int, int] | None
    batch: int
    mode: str
    dtype: str
    steps: Sequence[Step]
    activation_bytes: int
    held: Held | None = None
    notes: tuple[str, ...] = ()
    uncounted: bool = False

    @property
    def attends(self) -> bool:
        """Whether it has softmax attention: fused, or a softmax and a product of data with data."""
        if any(step.kind == "attention" for step in self.steps):
            return True
        pairs = any(step.kind == "product" and all(part.data for part in step.given) for step in self.steps)
        return pairs and any(step.operator in SOFTMAX for step in self.steps)

    def works(self, batch: int | None = None, tile: int = 1) -> Iterator[Work]:
        """On that many images; None: as traced. tile: of fused attention, as of Step.work."""
        if self.mode == "training" and batch not in (None, self.batch):
            raise ValueError("gradients of weights do not grow with the batch: trace training with the batch itself")
        scale = 1 if batch is None else batch / self.batch
        return (step.work(scale, tile) for step in self.steps)


def _whole(given: tuple[Part, ...], tile: int) -> float:
    """Pairs in whole tiles over pairs. given: q, k, v; or the gradient of the result, q, k, v."""
    queries, keys = given[0].shape[-2], given[2].shape[-2]
    return ceil(queries / tile) * ceil(keys / tile) * tile**2 / (queries * keys)
