"""Peak bytes of inference and of training of any source, and what they consist of.

Training is as in a loop that frees the gradients before each call (`zero_grad()`): forward, backward, step of the
optimiser, whose states are there already. Its peak is that of the call or that of the step, whichever is higher: while
activations are most, most gradients are not there yet. NOT in it: the loss, and what lies outside torch's allocator
(code, contexts, fragments of free memory between tensors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vitbench.ledger.tape import PRECISIONS
from vitbench.operator import MODES
from vitbench.refusal import Refusal
from vitbench.source import Image, Opened, open_source

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage


class Optimiser(NamedTuple):
    """What one of torch's holds, in parameters. states: each. apart: above all else while it steps, of the largest
    parameter, for it takes one after another. counts: bytes a tensor.
    """

    states: int = 0
    apart: int = 0
    counts: int = 0


OPTIMISERS = {
    "none": Optimiser(),
    "sgd": Optimiser(),
    "momentum": Optimiser(states=1),
    "adamw": Optimiser(states=2, apart=2, counts=4),  # root of the second moment, and once more divided
}


class Peak(NamedTuple):
    """Most bytes held at once above parameters, buffers and inputs. gradients: of them, those of parameters."""

    bytes: int
    gradients: int


class Device(NamedTuple):
    """What a call holds there. peak: of a source opened on meta tensors, in training or not. dtypes: it tells these."""

    peak: Callable[[Opened, bool], Peak]
    dtypes: tuple[str, ...]


def _cpu(opened: Opened, training: bool) -> Peak:
    from vitbench.measure.scratch import workspace
    from vitbench.trace import trace

    mode = "training" if training else "inference"
    found = trace(opened, 1, device="cpu", dtype="float32", mode=mode, workspace=workspace).held
    assert found is not None
    return Peak(found.call_bytes, found.gradient_bytes)


CPU = Device(_cpu, ("float32",))


@dataclass(frozen=True)
class Memory:
    """Bytes held at the peak. gradients: of parameters, those that are there then. activations: all that is neither of
    the others: of the call, with the workspace of its operators, or of the optimiser's step where `stepping`.
    """

    parameters: int
    buffers: int
    inputs: int
    optimiser: int
    gradients: int
    activations: int
    stepping: bool = False

    @property
    def peak_bytes(self) -> int:
        return self.parameters + self.buffers + self.inputs + self.optimiser + self.gradients + self.activations


@dataclass(frozen=True)
class Setup:
    """What is to run. image: pixels; None means the source's own. mode: inference or training. optimiser: of
    OPTIMISERS; none leaves its step out. eager: no fused attention. dtype: of those that the device tells.
    """

    source: str
    image: Image | None = None
    batch: int = 1
    mode: str = "inference"
    optimiser: str = "none"
    eager: bool = False
    dtype: str = "float32"
    device: Device = CPU

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("optimiser", tuple(OPTIMISERS))):
            if (given := getattr(self, name)) not in known:
                raise Refusal(f"unknown {name} {given!r}; known: {', '.join(known)}")
        if self.dtype not in self.device.dtypes:
            raise Refusal(f"dtype {self.dtype!r} is not told there; expected one of {', '.join(self.device.dtypes)}")
        if self.batch < 1:
            raise Refusal(f"batch {self.batch} is less than 1")
        if self.optimiser != "none" and self.mode != "training":
            raise Refusal(f"optimiser {self.optimiser} steps in training alone, not in {self.mode}")

    def opened(self) -> Opened:
        """On meta tensors. Raises Refusal."""
        import torch

        opened = open_source(self.source, self.image, self.batch, eager=self.eager)
        dtype = getattr(torch, PRECISIONS[self.dtype].stored)

        def cast(one: Tensor) -> Tensor:
            return one.to(dtype) if one.is_floating_point() else one

        inputs: Any = torch.utils._pytree.tree_map_only(torch.Tensor, cast, opened.inputs)
        return Opened(self.source, opened.module.to(dtype), inputs, opened.image)

    def memory(self) -> Memory:
        """Raises Refusal where the source does not run, in its own words."""
        return held(self.opened(), self.mode, self.optimiser, self.device)


def held(opened: Opened, mode: str = "inference", optimiser: str = "none", device: Device = CPU) -> Memory:
    """opened: on meta tensors, in the dtype in which it runs. Raises Refusal where it does not, in its own words."""
    from vitbench.exact.watch import tensors

    training = mode == "training"
    peak = device.peak(opened, training)
    weights = list(opened.module.parameters())
    sizes = [one.nbytes for one in weights if one.requires_grad and training]
    kind = OPTIMISERS[optimiser]
    stepped = kind.apart * max(sizes, default=0)
    stepping = optimiser != "none" and sum(sizes) + stepped > peak.bytes
    gradients = sum(sizes) if stepping else peak.gradients
    return Memory(
        parameters=_bytes(weights),
        buffers=_bytes(opened.module.buffers()),
        inputs=_bytes(tensors(opened.inputs)),
        optimiser=kind.states * sum(sizes) + kind.counts * len(sizes),
        gradients=gradients,
        activations=stepped if stepping else peak.bytes - peak.gradients,
        stepping=stepping,
    )


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Of their storages, each once."""
    storages = {id(storage): storage for storage in map(_storage, tensors)}
    return sum(storage.nbytes() for storage in storages.values())


def _storage(tensor: Tensor) -> UntypedStorage:
    return tensor.untyped_storage()
