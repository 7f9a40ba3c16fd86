"""Which program on paper a variant has, and what it does at many images and batches at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vitbench.arithmetic import Number
from vitbench.ledger import swin, vit
from vitbench.ledger.attend import BACKENDS
from vitbench.ledger.tape import PRECISIONS, Kernels, Tape
from vitbench.model import CHANNELS, Variant
from vitbench.models.swin import Swin
from vitbench.models.vit import SPECIAL, Vit
from vitbench.refusal import Refusal
from vitbench.shape import Shape
from vitbench.step import BYTES
from vitbench.work import Work

PROGRAMS: dict[type, Callable[..., None]] = {Vit: vit.write, Swin: swin.write}
SIDES = 32  # pixels a side of Swin's images are whole multiples of, and more than one


@dataclass(frozen=True)
class Ledger:
    """works: kernels, alike ones in one row. macs: each product once. parameters: elements. activation_bytes: at the
    peak above parameters, buffers and inputs. fixed_bytes: of these three. Space within one kernel is in neither.
    """

    works: Sequence[Work]
    macs: Number
    parameters: Number
    activation_bytes: Number
    fixed_bytes: Number

    @property
    def peak_bytes(self) -> Number:
        return self.fixed_bytes + self.activation_bytes


def known(variant: Variant) -> bool:
    """Whether its program is written here."""
    model: Any = variant.model
    if type(model) is Vit:
        return bool(model.positions == "learned" and variant.prefix == SPECIAL[model.pool])
    return type(model) is Swin and not model.depth % 2


def ledger(
    variant: Variant, images: Number, batches: Number, backend: str, dtype: str, kernels: Kernels | None = None
) -> Ledger:
    """Inference. images: pixels a side, of square ones; batches: either numbers or NumPy arrays that broadcast.

    backend: of BACKENDS; dtype: of PRECISIONS. kernels: None means those of a card. Raises Refusal where there is no
    such program here.
    """
    if not known(variant):
        raise Refusal(f"{variant.name} is not written on paper; known: ViT and Swin of `vitbench list models`")
    if (images % pixels(variant)).any() if hasattr(images, "any") else images % pixels(variant):
        raise Refusal(f"image {images} is no multiple of {pixels(variant)} pixels, which {variant.name} takes")
    tape = Tape(PRECISIONS[dtype], kernels or Kernels())
    side = images // variant.model.pixels()
    shape = Shape(batches, side, side, variant.dim, variant.heads, variant.prefix)
    PROGRAMS[type(variant.model)](tape, variant.model, shape, BACKENDS[backend])
    itemsize = BYTES[tape.precision.stored]
    fixed = (tape.parameters + batches * CHANNELS * images**2) * itemsize + tape.buffers
    return Ledger(tape.works, tape.macs, tape.parameters, tape.peak, fixed)


def pixels(variant: Variant) -> int:
    """Of which the sides of its images are whole multiples here."""
    return SIDES if type(variant.model) is Swin else variant.model.pixels()
