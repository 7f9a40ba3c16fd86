"""The exact count of any module: every product of a call, seen at torch's dispatcher on meta tensors.

Nothing is allocated and nothing computed: any model at any resolution is counted in the time that Python takes to
walk through it. Fused attention is one operator (`fused.py`), whichever kernel it would run. What has no formula is
named in `Tally.uncounted`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode

from vitbench import compiler
from vitbench.aten import has_no_products, is_arithmetic
from vitbench.exact import fused
from vitbench.exact.lifetimes import Lifetimes
from vitbench.exact.roles import DATA, WEIGHTS, Role, Roles
from vitbench.exact.shortcuts import shortcut
from vitbench.exact.tally import UNKNOWN, Product, Tally
from vitbench.formulas import macs

SOFTMAX = ("_softmax", "_safe_softmax")
COMPILED = "_orig_mod."  # in the path of a module that torch.compile wraps
ADDED = tuple(  # their first argument is added to the product; with a line below, in place
    f"{name}{ending}" for name in ("addmm", "baddbmm", "addmv", "addbmm") for ending in ("", "_")
)


def tally(module: nn.Module, inputs: tuple[Any, ...], *, training: bool = False) -> Tally:
    """One call on meta tensors: forward, or forward and the gradients of all parameters that take one.

    Whatever the module or torch raises goes through. Raises ValueError where nothing that it gives takes a gradient.
    """
    with watching(module, inputs) as watch:
        if not training:
            with torch.no_grad():
                result = module(*inputs)
            watch.found.peak_bytes = watch.lifetimes.peak()
            return watch.found
        with torch.enable_grad():
            result = module(*inputs)
            outputs = [one for one in tensors(result) if one.requires_grad]
            if not outputs:
                raise ValueError("nothing that it gives takes a gradient")
            torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])
        gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
        watch.found.peak_bytes = watch.lifetimes.peak(without=gradients)
        watch.found.elementwise.update(watch.found.elementwise)  # each has a gradient, counted as one more
        module.zero_grad(set_to_none=True)
        return watch.found


@contextmanager
def watching(module: nn.Module, inputs: tuple[Any, ...]) -> Iterator[Watch]:
    """Inside, what runs is seen as the operators of the module at work on the inputs."""
    watch = Watch(module, inputs)
    quiet = warnings.catch_warnings(), redirect_stdout(sys.stderr)
    with quiet[0], quiet[1], compiler.turned_off(), torch.device("meta"), _hooked(watch.inside):
        warnings.simplefilter("ignore")  # of how a program runs, not of what it does
        with fused.intercepted(watch), watch:
            yield watch


def tensors(tree: Any) -> Iterator[Tensor]:
    """All in a tree of tuples, lists, dicts and what torch knows as one."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for one in tree:
            yield from tensors(one)
    elif isinstance(tree, dict):
        yield from tensors(list(tree.values()))
    elif tree is not None and not isinstance(tree, (int, float, str, torch.dtype, torch.device)):
        leaves = torch.utils._pytree.tree_leaves(tree)
        if leaves != [tree]:
            yield from tensors(leaves)


class Watch(TorchDispatchMode):
    """Sees the operators of a call, and keeps what is known of their tensors."""

    supports_higher_order_operators = True

    def __init__(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        given = list(tensors(inputs))
        self.found, self.roles = Tally(), Roles(given)
        self.lifetimes = Lifetimes([*given, *module.parameters(), *module.buffers()])
        named = reversed(list(module.named_modules()))
        self.names = {id(part): path.replace(COMPILED, "") for path, part in named}
        self.inside: list[nn.Module] = []
        self.function = ""
        self.origins: dict[int, Product] = {}  # forward products, by the number of their node for the backward
        self.paused = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Inside, operators run unseen."""
        self.paused = True
        try:
            with torch._C.DisableTorchFunction():
                yield
        finally:
            self.paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if not hasattr(func, "_overloadpacket"):  # of higher order, a loop or a condition: what it runs is not seen
            self.found.uncounted.setdefault(str(func), self.path)
            return func(*args, **kwargs)
        if _decomposes(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        with torch._C.DisableTorchFunction():
            result = shortcut(func, args, kwargs)
            result = func(*args, **kwargs) if result is None else result
            self._see(func, args, kwargs, result)
        return result

    def _see(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        packet = func._overloadpacket
        given, made = list(tensors((args, kwargs))), list(tensors(result))
        self.lifetimes.see(made)
        count = macs(packet, args, kwargs, result)
        elements = made[0].numel() if made else 0
        if count is not None and packet in fused.DIRECT:
            q, k, v = (one.transpose(1, 2) if fused.DIRECT[packet] else one for one in args[:3])
            self.attended((q, k, v, None), made[0], q.shape[:-1].numel() * k.shape[-2], str(packet))
            return
        if count is not None:
            role = self._product(packet, count, given[1:] if packet.__name__ in ADDED else given, made)
            self._elementwise(packet, elements if _biased(packet, args) else 0)
        else:
            role = self._other(func, given, elements)
            if is_arithmetic(func):
                self._elementwise(packet, elements)
            elif not has_no_products(packet):
                self.found.uncounted.setdefault(str(packet), self.path)
        for one in () if func.is_view else made:
            self.roles.give(one, role)

    def _elementwise(self, operator: Any, elements: int) -> None:
        if elements and _place() == "forward":
            self.found.elementwise[str(operator)] += elements

    @contextmanager
    def calling(self, function: str) -> Iterator[None]:
        """Inside, the program is in that function of torch's, if it was in none before."""
        before = self.function
        self.function = before or function
        try:
            yield
        finally:
            self.function = before

    def attended(
        self, given: tuple[Tensor | None, ...], out: Tensor, pairs: int, operator: str = fused.OPERATOR
    ) -> tuple[Product, Product]:
        """Scores and mix of q, k, v (..., N, d) and what is added to the scores. pairs: of all heads."""
        q, k, v, added = given
        assert q is not None and k is not None and v is not None
        role, term = self.made_of(self.roles.of(q), self.roles.of(k), pairs)
        scores = self.add(pairs * q.shape[-1], "scores" if term == "pairs" else term, operator, pairs)
        if term == "pairs":
            self.found.attentions.append((q.shape[-2], k.shape[-2]))
            role = role._replace(mixing=True)
        if added is not None and self.roles.of(added).data:
            role = role._replace(data=True)
        self._elementwise(operator, pairs * (2 if added is not None else 1))
        role, term = self.made_of(role, self.roles.of(v), out.numel())
        mix = self.add(pairs * v.shape[-1], term, operator, out.numel())
        self.roles.give(out, role)
        return scores, mix

    def fuses(self, _query: Tensor) -> bool:
        """Whichever kernel runs, the count is that of one."""
        return True

    def attended_back(
        self,
        products: tuple[Product, Product],
        times: tuple[int, int],
        _given: tuple[Tensor | None, ...],
        _made: tuple[Tensor | None, ...],
    ) -> None:
        """Gradients of scores and mix, each as large as these."""
        for product, count in zip(products, times, strict=True):
            if count:
                self.found.products.append(replace(product, macs=count * product.macs, place="backward"))

    @property
    def notes(self) -> list[str]:
        return self.found.notes

    @property
    def path(self) -> str:
        return self.names.get(id(self.inside[-1]), "") if self.inside else ""

    def add(self, count: int, term: str, operator: str, elements: int, place: str | None = None) -> Product:
        """A product of the module at hand."""
        kind = type(self.inside[-1]).__name__ if self.inside else ""
        place = place or _place()
        product = Product(count, term, operator, self.function, self.path, kind, place, elements)
        self.found.products.append(product)
        return product

    def _product(self, packet: Any, count: int, factors: list[Tensor], made: list[Tensor]) -> Role:
        elements = made[0].numel() if made else 0
        node = torch._C._current_autograd_node()
        if _place() == "backward" and node is not None:
            of = self.origins.get(node._sequence_nr())
            term = of.term if of else UNKNOWN
            term = "pairs" if "attention" in packet.__name__ else term  # all of its gradients at once
            product = self.add(count, term, str(packet), elements)
            if of:
                product.function, product.module, product.kind = of.function, of.module, of.kind
            return DATA
        convolution = "conv" in packet.__name__
        role, term = self.made_of(self.roles.of(factors[0]), self.roles.of(factors[1]), elements)
        if convolution and term == "linear":
            term = "conv"
            if self.found.grid is None and role.data and made[0].ndim == 4:
                self.found.grid = made[0].shape[-2] * made[0].shape[-1]
        product = self.add(count, term, str(packet), elements)
        number = torch._C._autograd._get_sequence_nr() - 1  # of the node that has just been made for it
        if torch.is_grad_enabled() and any(one.requires_grad for one in factors):
            self.origins[number] = product
        else:  # it has none; inside a function with a backward of its own that is the function's
            self.origins.setdefault(number, replace(product, term=UNKNOWN))
        return role

    def made_of(self, first: Role, second: Role, elements: int) -> tuple[Role, str]:
        """What the next product, of two factors, holds, and its term. elements: of what it gives."""
        both = first | second
        if first.data and second.data:
            number = len(self.found.products)
            return (DATA, "mix") if both.mixing else (Role(True, frozenset((number,))), "pairs")
        return both if self._as_many(both, elements) else Role(both.data), "linear" if both.data else "weights"

    def _as_many(self, role: Role, elements: int) -> bool:
        """Whether each of that many elements may still be one of a pair: heads may have been mixed, no more."""
        sizes = [self.found.products[n].elements for n in role.pairs]
        return elements in (sum(sizes), *sizes)  # side by side, or added

    def _other(self, func: Any, given: list[Tensor], elements: int) -> Role:
        role = WEIGHTS
        for one in given:
            role = role | self.roles.of(one)
        if func._overloadpacket.__name__ not in SOFTMAX:
            part = func._schema.is_mutable  # of what is written to, which stays what it was
            return role if part or self._as_many(role, elements) else Role(role.data)
        for number in role.pairs:
            self.found.products[number].term = "scores"
        if role.pairs and not role.mixing:
            self.found.attentions.append((given[0].shape[-2], given[0].shape[-1]))
        return Role(role.data, role.pairs, bool(role.pairs))


@cache
def _decomposes(func: Any) -> bool:
    return bool(func._can_decompose())


def _biased(packet: Any, args: Any) -> bool:
    """Whether a product adds something to what it gives."""
    return packet.__name__ in ADDED or (packet.__name__ == "convolution" and args[2] is not None)


def _place() -> str:
    if torch._C._current_autograd_node() is None:
        return "forward"
    return "recomputed" if torch.is_grad_enabled() else "backward"


@contextmanager
def _hooked(inside: list[nn.Module]) -> Iterator[None]:
    """Keeps the modules that are running in the list, outermost first."""

    def enter(module: nn.Module, _: Any) -> None:
        inside.append(module)

    def leave(module: nn.Module, _inputs: Any, _result: Any) -> None:
        while inside and inside.pop() is not module:
            pass

    before = hooks.register_module_forward_pre_hook(enter)
    after = hooks.register_module_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()
