"""What a program gives a device, as it is written down step by step: its kernels, and the bytes that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from vitbench.arithmetic import Number, larger
from vitbench.step import BYTES
from vitbench.work import PRODUCTS, Work


class Tensor(NamedTuple):
    """elements: a number, or an array of many shapes' numbers."""

    elements: Number
    dtype: str

    @property
    def bytes(self) -> Number:
        return self.elements * BYTES[self.dtype]


class Precision(NamedTuple):
    """stored: dtype of weights, images, norms and softmax. products: of products of matrices, and what they give."""

    stored: str
    products: str


PRECISIONS = {
    "amp": Precision("float32", "float16"),
    "amp-bfloat16": Precision("float32", "bfloat16"),
    "float32": Precision("float32", "float32"),
    "float16": Precision("float16", "float16"),
    "bfloat16": Precision("bfloat16", "bfloat16"),
}


class Kernels(NamedTuple):
    """Of fused attention. tile: queries and keys that it computes at once, as of `Step.work`. sums: it writes one sum
    a query.
    """

    tile: int = 1
    sums: bool = False


class Tape:
    """works: of all kernels. macs: of them all, each product once. held: bytes of tensors that are alive above
    parameters, buffers and inputs. peak: most of them. parameters, buffers: elements and bytes of what the program
    keeps.

    when: 1, or an array of 0 and 1: whether the step is taken at all, shape by shape.
    """

    def __init__(self, precision: Precision, kernels: Kernels) -> None:
        self.precision, self.kernels = precision, kernels
        self.works: list[Work] = []
        self.macs: Number = 0
        self.held: Number = 0
        self.peak: Number = 0
        self.parameters: Number = 0
        self.buffers: Number = 0
        self._times = 1
        self._cast = 0  # bytes of weights that autocast keeps to the end, once they are cast

    def run(
        self,
        operator: str,
        kind: str,
        given: Sequence[Tensor],
        made: Tensor,
        *,
        macs: Number = 0,
        tiles: Number = 1,
        inner: Number = 0,
        strided: bool = False,
        when: Number = 1,
        apart: Number = 0,
    ) -> Tensor:
        """Writes down a kernel and what it makes, which is held until it is freed.

        macs, inner, strided: as of Work. tiles: so many times these MACs are computed, in whole tiles. apart: bytes
        made beside, and gone at once.
        """
        times, dtype = self._times * when, given[-1 if kind in PRODUCTS else 0].dtype
        read = sum(one.bytes for one in given) * times
        computed, written = macs * times * tiles, made.bytes * times
        self.works.append(Work(operator, kind, dtype, computed, read, written, inner, times, strided))
        self.macs = self.macs + macs * times
        self.hold(made.bytes * when, apart * when)
        return made

    def hold(self, size: Number, apart: Number = 0) -> None:
        """apart: bytes above these that are gone at once."""
        self.held = self.held + size
        self.peak = larger(self.peak, self.held + apart)

    def free(self, *tensors: Tensor, when: Number = 1) -> None:
        for tensor in tensors:
            self.held = self.held - tensor.bytes * when

    @contextmanager
    def cast(self, tensor: Tensor, dtype: str) -> Iterator[Tensor]:
        """Inside, the tensor in that dtype: itself, or a copy."""
        if tensor.dtype == dtype:
            yield tensor
            return
        made = self.run("_to_copy", "cast", (tensor,), Tensor(tensor.elements, dtype))
        yield made
        self.free(made)

    def owned(self, elements: Number) -> Tensor:
        """A parameter as it is stored."""
        self.parameters = self.parameters + self._times * elements
        return Tensor(elements, self.precision.stored)

    def keep(self, size: Number) -> None:
        """Bytes of a buffer."""
        self.buffers = self.buffers + self._times * size

    def weight(self, elements: int) -> Tensor:
        """A parameter in the dtype of products; autocast keeps its copy."""
        stored, dtype = self.owned(elements), self.precision.products
        if stored.dtype == dtype:
            return stored
        made = self.run("_to_copy", "cast", (stored,), Tensor(elements, dtype))
        self._cast += made.bytes
        return made

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """What is written inside is done so many times over, each with weights of its own. Its peak is the last's."""
        outer, before, cast = self.peak, self._times, self._cast
        self.peak, self._times = self.held, before * times
        yield
        earlier = (times - 1) * (self._cast - cast)
        self._cast += earlier
        self.held = self.held + earlier
        self.peak, self._times = larger(outer, self.peak + earlier), before
