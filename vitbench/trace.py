"""Any model as the steps that a device would be given: seen at torch's dispatcher on fake tensors.

A fake tensor has a device and no memory, so a model is traced for a GPU that is not there, under the autocast that
would run there: the casts are steps like all others. Fused attention is one step that reads q, k, v, the mask and
writes the result; where SDPA has no fused kernel (q, k, v that are not four-dimensional), its products and softmax are
seen one by one.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from vitbench import compiler, formulas, kinds
from vitbench.aten import has_no_products, is_arithmetic
from vitbench.autocast import AMP, as_on_cuda, autocast
from vitbench.exact import fused
from vitbench.exact.lifetimes import Lifetimes
from vitbench.exact.roles import DATA, WEIGHTS, Role, Roles
from vitbench.exact.watch import tensors
from vitbench.placed import placed
from vitbench.refusal import Refusal
from vitbench.source import Opened, said
from vitbench.step import BYTES, Held, Part, Step, Trace
from vitbench.work import PRODUCTS

Workspace = Callable[[Any, Any, Any], tuple[int, int]]  # as measure.scratch.workspace
cuda: Any = torch.backends.cuda
UNCOUNTED = "{}: may hold products and has no formula; it is priced by the bytes that it moves"
KEPT = "its first call keeps tensors for later ones: the time is of a second call, the memory of the first"
FUSED = (cuda.flash_sdp_enabled, cuda.mem_efficient_sdp_enabled, cuda.cudnn_sdp_enabled)


def trace(
    opened: Opened,
    batch: int,
    *,
    device: str = "cuda",
    dtype: str = "amp",
    mode: str = "inference",
    on: str | None = None,
    workspace: Workspace | None = None,
) -> Trace:
    """opened: on meta tensors, with inputs of that batch. dtype: amp, amp-bfloat16, float32, float16 or bfloat16.

    on: where the fake tensors say that they are. None: on the device; in training on CUDA, whose backward would need
    one, on the CPU, which stands in for it. workspace: of the device's operators; None: not known, so not in `held`.
    Where an inference keeps something for later ones (LeViT its biases), the steps are those of a second.
    Raises Refusal where the model cannot be traced, in its own words.
    """
    on, call = on or ("cpu" if mode == "training" else device), mode
    quiet = warnings.catch_warnings(), redirect_stdout(sys.stderr)
    lists = as_on_cuda() if on != device and dtype in AMP else nullcontext()
    try:
        with quiet[0], quiet[1], lists, compiler.turned_off(), FakeTensorMode(), placed(opened, on, dtype) as inputs:
            warnings.simplefilter("ignore")
            weights = [*opened.module.parameters(), *opened.module.buffers()]
            tracer = last = Tracer([*tensors(inputs)], weights, fusing=device != "cpu", workspace=workspace)
            opened.module.train(mode == "training")
            tracer.run(opened.module, inputs, on, dtype, mode)
            if mode == "inference" and tracer.lifetimes.outlived():
                call, others = "second call", tree_map_only(Tensor, Tensor.clone, inputs)
                last = Tracer([*tensors(others)], weights, fusing=device != "cpu", roles=tracer.roles)
                last.run(opened.module, others, on, dtype, mode)
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            held = Held(
                parameter_bytes=_bytes(weights),
                input_bytes=_bytes(tensors(inputs)),
                moments=tuple(tracer.lifetimes.moments(tracer.fixed(gradients))),
                gradient_bytes=tracer.lifetimes.highest(gradients)[1],
            )
            peak = tracer.lifetimes.peak(without=gradients)
    except (Exception, SystemExit) as error:
        size = f"{opened.image[0]}x{opened.image[1]}" if opened.image else "its own inputs"
        raise Refusal(f"{opened.source} at {size} cannot be traced ({call}): {said(error)}") from error
    opened.module.eval()
    notes = *last.notes, *(UNCOUNTED.format(name) for name in last.uncounted), *([KEPT] if last is not tracer else [])
    return Trace(opened.source, opened.image, batch, mode, dtype, last.steps, peak, held, notes, bool(last.uncounted))


def _call(module: nn.Module, inputs: tuple[Any, ...], device: str, dtype: str, mode: str) -> None:
    with torch.set_grad_enabled(mode == "training"), autocast(device, dtype):
        result = module(*inputs)
    if mode == "training":
        outputs = [one for one in tensors(result) if one.requires_grad]
        if not outputs:
            raise ValueError("nothing that it gives takes a gradient")
        torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])


class Tracer(TorchDispatchMode):
    """Sees the operators of a call. It is a `fused.Watcher`."""

    def __init__(
        self,
        inputs: list[Tensor],
        weights: list[Tensor],
        *,
        fusing: bool,
        workspace: Workspace | None = None,
        roles: Roles | None = None,
    ) -> None:
        """fusing: the device has fused attention. On the CPU torch's own choice is seen, even without it. roles: of
        what an earlier call kept.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.fusing, self.workspace = fusing, workspace
        self.steps: list[Step] = []
        self.roles, self.lifetimes = roles or Roles(()), Lifetimes([*inputs, *weights])
        for one in inputs:
            self.roles.give(one, DATA)
        self.notes: list[str] = []
        self.uncounted: dict[str, None] = {}  # operators that may hold products and have no formula
        self._numbers: weakref.WeakKeyDictionary[torch.UntypedStorage, int] = weakref.WeakKeyDictionary()
        self._next = count()
        self._paused = False
        self._fixed: set[int] = set()  # storages, by Lifetimes, that do not grow with the batch

    def run(self, module: nn.Module, inputs: tuple[Any, ...], device: str, dtype: str, mode: str) -> None:
        """Sees one call."""
        with torch.device(device), fused.intercepted(self), self:
            _call(module, inputs, device, dtype, mode)

    def fixed(self, gradients: Iterable[Tensor]) -> set[int]:
        """Storages, as Lifetimes numbers them, that do not grow with the batch. gradients: of weights."""
        numbers = self.lifetimes.numbers
        return self._fixed | {numbers[id(one.untyped_storage())] for one in gradients}

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Inside, operators run unseen."""
        self._paused = True
        try:
            with torch._C.DisableTorchFunction():
                yield
        finally:
            self._paused = False

    def calling(self, _function: str) -> AbstractContextManager[None]:
        return nullcontext()

    def fuses(self, query: Tensor) -> bool:
        """Fused kernels take (B, H, N, d) and nothing else; none is taken where all are turned off (`sdpa.math`)."""
        return self.fusing and query.ndim == 4 and any(allowed() for allowed in FUSED)

    def attended(self, given: tuple[Tensor | None, ...], out: Tensor, pairs: int) -> tuple[int, int]:
        q, k, v, *_ = given
        assert q is not None and k is not None and v is not None
        scores, mix = pairs * q.shape[-1], pairs * v.shape[-1]
        self._add(fused.OPERATOR, "attention", scores + mix, q.shape[-1], given, (out,))
        return scores, mix

    def attended_back(
        self,
        products: tuple[int, int],
        times: tuple[int, int],
        given: tuple[Tensor | None, ...],
        made: tuple[Tensor | None, ...],
    ) -> None:
        scores, mix = products
        macs = scores * (1 + times[0]) + mix * times[1]  # kernels compute the scores again
        q = given[0]
        assert q is not None
        self._add(f"{fused.OPERATOR}_backward", "attention", macs, q.shape[-1], given, made)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._paused:
            return result
        if hasattr(func, "_overloadpacket"):
            self._see(func, args, kwargs, result)
        else:  # of higher order: what it runs is not seen
            self.uncounted.setdefault(str(func))
        return result

    def _see(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        given, made = list(tensors((args, kwargs))), list(tensors(result))
        self.lifetimes.see(made)
        if self.workspace is not None:
            self._fixed.add(self.lifetimes.within(self.workspace(func, args, kwargs)))
        if func.is_view or kinds.is_free(func) or not made:
            return
        macs = formulas.macs(func._overloadpacket, args, kwargs, result)
        kind = kinds.kind(func, args, given, made, macs)
        inner = kinds.inner(func, args, made, macs)
        if macs is None and not is_arithmetic(func) and not has_no_products(func._overloadpacket):
            self.uncounted.setdefault(str(func._overloadpacket))
        role = self._role(given)
        given, made = kinds.moved(func, given, made)
        if kinds.wants_dense(func) and not self._part(given[0]).dense:
            given[0] = self._copied(given[0])
        each = self.fusing and kinds.each(func, given)
        self._add(func._overloadpacket.__name__, kind, macs or 0, inner, given, made, role, each)

    def _role(self, given: Iterable[Tensor]) -> Role:
        return DATA if any(self.roles.of(one).data for one in given) else WEIGHTS

    def _add(
        self,
        name: str,
        kind: str,
        macs: int,
        inner: int,
        given: Sequence[Tensor | None],
        made: Sequence[Tensor | None],
        role: Role | None = None,
        each: bool = False,
    ) -> None:
        """role: of what is made; None: that follows from what is given."""
        read, written = ([one for one in some if one is not None] for some in (given, made))
        role = role or self._role(read)
        for one in written:
            whole = self.roles.of(one) | role
            self.roles.give(one, whole)
            self._lies(one, whole.data)
        last = kind in PRODUCTS and kind != "attention"  # weights come last, a mask after q, k, v
        dtype = _name((read or written)[-1 if last else 0].dtype)
        parts = tuple(map(self._part, read)), tuple(map(self._part, written))
        self.steps.append(Step(name, kind, dtype, macs, inner, *parts, each))

    def _lies(self, tensor: Tensor, data: bool) -> None:
        number = self.lifetimes.numbers.get(id(tensor.untyped_storage()))
        if number is not None:
            (self._fixed.discard if data else self._fixed.add)(number)

    def _copied(self, tensor: Tensor) -> Tensor:
        """The copy that a kernel makes for itself, dense."""
        with self.pause():
            dense = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        self._add("contiguous", "copy", 0, 0, (tensor,), (dense,))
        return dense

    def _part(self, tensor: Tensor) -> Part:
        storage = tensor.untyped_storage()
        if storage not in self._numbers:
            self._numbers[storage] = next(self._next)
        sizes = int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())
        return Part(self._numbers[storage], *sizes, _name(tensor.dtype), self.roles.of(tensor).data)


def _name(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in BYTES:
        raise ValueError(f"the size of {name} is not known; known: {', '.join(BYTES)}")
    return name


def _bytes(some: Iterable[Tensor]) -> int:
    """Of their storages, each once."""
    return sum({id(storage): int(storage.nbytes()) for storage in [one.untyped_storage() for one in some]}.values())
