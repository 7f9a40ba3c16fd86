"""One point of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, fields
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from vitbench.attention import Attention
from vitbench.cost import Cost
from vitbench.operator import MODES, Operator, operators
from vitbench.refusal import Refusal
from vitbench.shape import Shape

ITEMSIZE = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}  # bytes an element
DEVICES = ("cpu", "cuda")
CACHES = {"cpu": ("warm",), "cuda": ("cold", "warm")}  # how a sample may find them; the first unless asked otherwise


class Tensors(NamedTuple):
    """What one attention handles, in bytes; 0 where there is none.

    entries: images x groups, a count. features: q, k, v or the result, each. scores: one score matrix of the batch.
    mask: bool (1, G, 1, N, N). bias: (1, 1, H, N, N). merged: both as one additive mask (1, G, H, N, N).
    strided: q, k, v are views of one projection in which entries and heads cannot be merged without a copy.
    """

    entries: int
    features: int
    scores: int
    mask: int
    bias: int
    merged: int
    strided: bool


@dataclass(frozen=True)
class Case:
    """operator on shape, its attention executed by backend, in dtype, on device; how much, and how.

    copy: 0, or the number of a further measurement of the same thing, which shows how far identical cases differ.
    Raises Refusal for a value that no case can have.
    """

    operator: Operator
    shape: Shape
    backend: str
    dtype: str = "float32"
    device: str = "cpu"
    scope: str = "layer"
    mode: str = "inference"
    copy: int = 0

    def __post_init__(self) -> None:
        known = {"dtype": ITEMSIZE, "device": DEVICES, "mode": MODES}
        for name, values in known.items():
            if getattr(self, name) not in tuple(values):
                raise Refusal(f"unknown {name} {getattr(self, name)!r}; known: {', '.join(values)}")
        if not isinstance(self.backend, str):
            raise Refusal(f"backend {self.backend!r} is no name")
        typed = {field.name: field.type for field in fields(self.operator)}  # type: ignore[arg-type]
        given = {**asdict(self.shape), **asdict(self.operator), "copy": self.copy}  # type: ignore[call-overload]
        for name, value in given.items():
            if type(value).__name__ != typed.get(name, "int"):
                expected = "a word" if typed.get(name) == "str" else "a whole number"
                raise Refusal(f"{name} {value!r} is not {expected}")
        if self.copy < 0:
            raise Refusal(f"copy {self.copy} is negative; expected 0 or more")
        if reason := self.operator.refused(self.shape, self.scope):
            raise Refusal(reason)

    @property
    def id(self) -> str:
        """Stable and readable; equal cases have equal ids."""
        parts = [self.operator, self.backend, self.shape, self.dtype, self.device, self.scope, self.mode]
        return ".".join(map(str, [*parts, f"copy{self.copy}"] if self.copy else parts))

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return ITEMSIZE[self.dtype]

    def cost(self) -> Cost:
        return self.operator.cost(self.shape, self.scope, self.mode)

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The softmax attentions of one call, in order."""
        return self.operator.attentions(self.shape)

    def tensors(self) -> Tensors | None:
        """Sizes in bytes of what the attention handles; None unless it is one plain self-attention."""
        if len(self.attentions) != 1 or not _plain(self.attentions[0], self.shape):
            return None
        (attention,) = self.attentions
        entries, pairs = attention.batch * attention.groups, attention.queries * attention.keys
        bias = attention.heads * pairs * self.itemsize if attention.bias else 0
        return Tensors(
            entries=entries,
            features=prod(attention.q) * self.itemsize,
            scores=entries * attention.heads * pairs * self.itemsize,
            mask=attention.groups * pairs if attention.mask else 0,
            bias=bias,
            merged=attention.groups * bias if attention.mask else 0,
            strided=self.scope != "core" and attention.heads > 1 and entries > 1,
        )

    def to_dict(self) -> dict[str, Any]:
        """Flat, as it stands in a record."""
        rest = {name: getattr(self, name) for name in _OWN}
        return {"operator": self.operator.name, **asdict(self.operator), **asdict(self.shape), **rest}  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, flat: Mapping[str, Any]) -> Case:
        """The case that to_dict wrote, of this version or an older one. Raises Refusal for what is none."""

        def given(of: type[Any]) -> dict[str, Any]:  # what has a default may have come later
            return {field.name: flat[field.name] for field in fields(of) if field.name in flat or _needed(field)}

        try:
            kind = operators[str(flat["operator"])]
            rest = {name: flat[name] for name in _OWN if name in flat or name == "backend"}
            return cls(kind(**given(kind)), Shape(**given(Shape)), **rest)
        except KeyError as error:
            raise Refusal(f"a case lacks {error.args[0]!r}; expected it beside what it has") from None


def _needed(field: Field[Any]) -> bool:
    return field.default is MISSING


def _plain(attention: Attention, shape: Shape) -> bool:
    """All of the model's width, every token a query and a key; a bias for each head, a mask for each group, or none."""
    n = attention.queries
    return (
        attention.q == attention.k == attention.v
        and attention.heads * attention.head_dim == shape.dim
        and attention.bias in (None, (1, 1, attention.heads, n, n))
        and (
            attention.mask is None or (attention.mask == (1, attention.groups, 1, n, n) and attention.bias is not None)
        )
        and not attention.causal
        and attention.scale is None
    )


_OWN = ("backend", "dtype", "device", "scope", "mode", "copy")
