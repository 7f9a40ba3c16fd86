"""One exact count as what reasons select from: groups of products, of calls of functions and of modules, in plain data.

A class of torch's is named nn.Linear, any other by its module too: timm.layers.norm.LayerNorm is another class.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vitbench.audits.spelling import told_apart
from vitbench.exact import watch
from vitbench.published.fvcore import Fvcore
from vitbench.refusal import Refusal
from vitbench.source import Opened, said

Digest = dict[str, Any]
PRODUCT = ("term", "operator", "function", "kind", "within", "whole")
CALL = ("function", "kind", "within")
MODULE = ("kind", "within")


def digest(opened: Opened) -> Digest:
    """Counts a module that was opened on meta tensors, in the mode that it is in.

    macs, uncounted, notes. products: groups of one term, operator, function of torch's, class of the module (kind),
    classes around it (within), and operators that torch may run instead of one of these (whole); macs, elements given.
    functions: of one function and kind; modules: of one kind; operators: of one operator that is no product, or of
    what a product adds. Each with counts: in, out, and of modules biased, affine, held. fvcore: by function of torch's,
    what fvcore adds (added) and the MACs that it passes over (worded).

    Raises Refusal where the module does not take its inputs.
    """
    places = _Places(opened.module)
    functions, fvcore = _Functions(places), Fvcore()
    try:
        with told_apart(), places.noted(), functions, fvcore:
            found = watch.tally(opened.module, opened.inputs)
    except Exception as error:
        raise Refusal(f"{opened.source} cannot be counted: {said(error)}") from error
    counts: dict[tuple[Any, ...], Counter[str]] = {}
    for one in found.products:
        kind, within = places.at(one.module)
        key = one.term, one.operator, one.function, kind, within, places.whole(one.module)
        scores = one.elements if one.term == "scores" else 0
        counts.setdefault(key, Counter()).update({"macs": one.macs, "elements": one.elements, "scores": scores})
    return {
        "macs": found.macs,
        "uncounted": [*found.uncounted],
        "notes": found.notes,
        "products": [{**dict(zip(PRODUCT, key, strict=True)), **counted} for key, counted in counts.items()],
        "functions": [{**dict(zip(CALL, key, strict=True)), **counts} for key, counts in functions.found.items()],
        "modules": [{**dict(zip(MODULE, key, strict=True)), **counts} for key, counts in places.found.items()],
        "operators": [{"operator": name, "out": count} for name, count in found.elementwise.items()],
        "fvcore": [{"function": name, **counts} for name, counts in fvcore.found.items()],
    }


def kind_of(module: nn.Module) -> str:
    kind = type(module)
    return (
        f"nn.{kind.__qualname__}" if kind.__module__.startswith("torch.nn.") else f"{kind.__module__}.{kind.__name__}"
    )


class _Places:
    """What each module is, and, by class and place, what its calls took and gave.

    Of a compiled module and the one that it wraps, which share a place, it is the latter.
    """

    def __init__(self, root: nn.Module) -> None:
        self.modules = {_written(path): module for path, module in root.named_modules()}
        self.wholes: dict[str, str] = {}
        self.inside: list[str] = []
        self.found: dict[tuple[str, tuple[str, ...]], Counter[str]] = {}

    def at(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Its class, and the classes around it, outermost first."""
        *around, own = self._line(path)
        return kind_of(self.modules[own]), tuple(kind_of(self.modules[one]) for one in around)

    def whole(self, path: str) -> tuple[str, ...]:
        """The operators that torch may run instead of the module, or of one around it."""
        return tuple(self.wholes[one] for one in self._line(path) if one in self.wholes)

    def _line(self, path: str) -> list[str]:
        path = _written(path)
        parts = path.split(".") if path else []
        return [".".join(parts[:count]) for count in range(len(parts) + 1)]

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Inside, every call of a module is noted."""
        handles = []
        for path, module in self.modules.items():

            def before(module: nn.Module, args: Any, kwargs: Any, path: str = path) -> None:
                self.inside.append(path)
                if whole := _whole(module, args, kwargs):
                    self.wholes[path] = whole

            def after(module: nn.Module, args: Any, kwargs: Any, result: Any, path: str = path) -> None:
                self.inside.pop()
                given, made = next(watch.tensors((args, kwargs)), None), next(watch.tensors(result), None)
                if given is not None and made is not None:
                    self.found.setdefault(self.at(path), Counter()).update(_counts(module, given, made))

            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(module.register_forward_hook(after, with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


class _Functions(TorchFunctionMode):
    """Outermost functions of torch's that a program called, by the place that called them."""

    def __init__(self, places: _Places) -> None:
        super().__init__()
        self.places = places
        self.found: dict[tuple[str, str, tuple[str, ...]], Counter[str]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given, made = next(watch.tensors((args, kwargs or {})), None), next(watch.tensors(result), None)
        if given is not None and made is not None and self.places.inside:
            key = getattr(func, "__name__", str(func)), *self.places.at(self.places.inside[-1])
            self.found.setdefault(key, Counter()).update({"calls": 1, "in": given.numel(), "out": made.numel()})
        return result


def _counts(module: nn.Module, given: Tensor, made: Tensor) -> dict[str, int]:
    """in, out: elements; rows: of out. biased: outputs that a bias is added to. affine: elements taken by a module
    that has a weight. held: weight and bias times the first dimension of outputs.
    """
    held = sum(weight.numel() for name, weight in module.named_parameters() if name in ("weight", "bias"))
    leaf = next(module.children(), None) is None
    return {
        "calls": 1,
        "in": given.numel(),
        "out": made.numel(),
        "biased": made.numel() if getattr(module, "bias", None) is not None else 0,
        "affine": given.numel() if getattr(module, "weight", None) is not None else 0,
        "rows": made.numel() // made.shape[-1] if made.numel() else 0,
        "held": made.shape[0] * held if leaf and made.ndim else 0,
    }


def _written(path: str) -> str:
    """As in a program that is not compiled."""
    return f"{path}.".replace(watch.COMPILED, "").removesuffix(".")


def _whole(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The one operator that torch runs instead of this module where nothing takes a gradient; "" if none.

    The conditions are those of nn.MultiheadAttention.forward and nn.TransformerEncoderLayer.forward.
    """
    if not isinstance(module, (nn.TransformerEncoderLayer, nn.MultiheadAttention)):
        return ""
    given = list(watch.tensors([*inspect.signature(module.forward).bind(*args, **kwargs).arguments.values()]))
    if not given or given[0].ndim != 3:
        return ""
    if isinstance(module, nn.TransformerEncoderLayer):
        same = bool(module.activation_relu_or_gelu) and module.norm1.eps == module.norm2.eps
        return "_transformer_encoder_layer_fwd" if same and _fits(module.self_attn) else ""
    itself = len(given) >= 3 and given[0] is given[1] is given[2]
    return "_native_multi_head_attention" if itself and _fits(module) else ""


def _fits(attention: nn.MultiheadAttention) -> bool:
    plain = attention.bias_k is None and attention.bias_v is None and not attention.add_zero_attn
    even = attention.num_heads % 2 == 0 and attention._qkv_same_embed_dim
    return attention.batch_first and plain and even and attention.in_proj_bias is not None
