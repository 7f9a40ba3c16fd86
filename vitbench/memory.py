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

from vitbench.operator import MODES
from vitbench.refusal import Refusal
from vitbench.source import Image, Opened, open_source, said

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage

    from vitbench.exact.live import Peak

MIXED = "amp"
DTYPES = ("float32", "float16", "bfloat16", MIXED)


class Optimiser(NamedTuple):
    """What one of torch's holds, in parameters. states: each. apart, together: above all else while it steps: of the
    largest parameter where it takes one after another, of all where it takes all at once. counts: bytes a tensor.
    """

    states: int = 0
    apart: int = 0
    together: int = 0
    counts: int = 0


OPTIMISERS = {
    "none": Optimiser(),
    "sgd": Optimiser(),
    "momentum": Optimiser(states=1),
    "adamw": Optimiser(states=2, apart=2, together=1, counts=4),  # root of the second moment, and once more divided
}


class Device(NamedTuple):
    """What a call holds there. peak: of a source opened on meta tensors, in training or not. together: its optimiser
    takes all parameters at once. granule: bytes of which its allocator gives whole multiples (CUDA's: 512).
    """

    peak: Callable[[Opened, bool], Peak]
    together: bool
    granule: int = 1


def _cpu(opened: Opened, training: bool) -> Peak:
    from vitbench.exact import live
    from vitbench.measure import scratch

    return live.peak(opened.module, opened.inputs, training=training, device="cpu", workspace=scratch.workspace)


CPU = Device(_cpu, together=False)


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
    OPTIMISERS; none leaves its step out. eager: no fused attention. dtype: of parameters and inputs, or amp: float32,
    which the device's `peak` is to run under autocast.
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
        for name, known in (("mode", MODES), ("optimiser", tuple(OPTIMISERS)), ("dtype", DTYPES)):
            if (given := getattr(self, name)) not in known:
                raise Refusal(f"unknown {name} {given!r}; known: {', '.join(known)}")
        if self.batch < 1:
            raise Refusal(f"batch {self.batch} is less than 1")
        if self.optimiser != "none" and self.mode != "training":
            raise Refusal(f"optimiser {self.optimiser} steps in training alone, not in {self.mode}")

    def opened(self) -> Opened:
        """On meta tensors. Raises Refusal."""
        import torch

        opened = open_source(self.source, self.image, self.batch, eager=self.eager)
        if self.dtype == MIXED:
            return opened
        dtype = getattr(torch, self.dtype)

        def cast(one: Tensor) -> Tensor:
            return one.to(dtype) if one.is_floating_point() else one

        inputs: Any = torch.utils._pytree.tree_map_only(torch.Tensor, cast, opened.inputs)
        return Opened(self.source, opened.module.to(dtype), inputs, opened.image)

    def memory(self) -> Memory:
        """Raises Refusal where the source does not run, in its own words."""
        return held(self.opened(), self.mode, self.optimiser, self.device)


def held(opened: Opened, mode: str = "inference", optimiser: str = "none", device: Device = CPU) -> Memory:
    """opened: on meta tensors, in the dtype in which it runs. Raises Refusal where it does not, in its own words."""
    from vitbench.exact.lifetimes import rounded
    from vitbench.exact.watch import tensors

    training = mode == "training"
    module = opened.module.train(training)
    try:
        peak = device.peak(opened, training)
    except (Exception, SystemExit) as error:
        raise Refusal(f"{opened.source} at {_size(opened.image)} cannot run ({mode}): {said(error)}") from error
    weights = list(module.parameters())
    sizes = [rounded(one.nbytes, device.granule) for one in weights if one.requires_grad and training]
    kind = OPTIMISERS[optimiser]
    stepped = kind.together * sum(sizes) if device.together else kind.apart * max(sizes, default=0)
    stepping = optimiser != "none" and sum(sizes) + stepped > peak.bytes
    gradients = sum(sizes) if stepping else peak.gradients
    return Memory(
        parameters=_bytes(weights, device.granule),
        buffers=_bytes(module.buffers(), device.granule),
        inputs=_bytes(tensors(opened.inputs), device.granule),
        optimiser=kind.states * sum(sizes) + (0 if device.together else kind.counts * len(sizes)),
        gradients=gradients,
        activations=stepped if stepping else peak.bytes - peak.gradients,
        stepping=stepping,
    )


def _bytes(tensors: Iterable[Tensor], granule: int) -> int:
    """Of their storages, each once."""
    from vitbench.exact.lifetimes import rounded

    storages = {id(storage): storage for storage in map(_storage, tensors)}
    return sum(rounded(storage.nbytes(), granule) for storage in storages.values())


def _storage(tensor: Tensor) -> UntypedStorage:
    return tensor.untyped_storage()


def _size(image: Image | None) -> str:
    return f"{image[0]}x{image[1]}" if image else "its own inputs"
