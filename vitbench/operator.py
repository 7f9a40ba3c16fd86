"""The contract of an operator on paper: the mathematics of one attention layer and its closed forms.

No torch here and in vitbench/operators/: the program that must cost this stands in vitbench/layers/.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import ClassVar, NamedTuple

from vitbench.arithmetic import Number
from vitbench.cost import Cost
from vitbench.refusal import Refusal
from vitbench.registry import Registry
from vitbench.shape import Shape

SCOPES = ("core", "layer", "block")
MODES = ("inference", "training")
MLP_RATIO = 4  # hidden width of a block's MLP over dim (Dosovitskiy 2021, table 1; Liu 2021, section 3.3)


class Groups(NamedTuple):
    """Softmax attention runs inside each of count groups of an image; each holds tokens tokens."""

    count: Number
    tokens: Number


class Operator(ABC):
    """A frozen dataclass that holds the operator's own parameters; all methods are closed forms."""

    name: ClassVar[str]
    paper: ClassVar[str]  # authors, year, section or equation
    has_bias: ClassVar[bool] = False  # adds a learned bias to the scores

    @abstractmethod
    def groups(self, shape: Shape) -> Groups:
        """How the tokens of one image are split for attention, padding included."""

    @abstractmethod
    def core(self, shape: Shape) -> Cost:
        """From given q, k, v to the mixed values."""

    @abstractmethod
    def projections(self, shape: Shape) -> Cost:
        """All that the layer does around its core; parameters of the layer, bias tables included."""

    def held(self, shape: Shape) -> int | None:
        """Elements that the layer's program holds beside q, k, v while it attends: a rearranged copy of its input.

        None: not known, so neither is the layer's peak memory.
        """
        return None

    def masked(self, shape: Shape) -> bool:
        """Whether some pairs are forbidden."""
        return False

    def unsupported(self, shape: Shape) -> str | None:
        """Why this operator has no such shape, in one sentence; None if it has."""
        return None

    def cost(self, shape: Shape, scope: str = "layer", mode: str = "inference") -> Cost:
        """Closed form for one batch. scope: core, layer or block. mode: inference or training."""
        if scope not in SCOPES:
            raise Refusal(f"unknown scope {scope!r}; known: {', '.join(SCOPES)}")
        cost = self.core(shape)
        if scope != "core":
            tokens = shape.batch * shape.tokens * shape.dim
            cost = cost + self.projections(shape)
            cost = cost + _block(shape) if scope == "block" else cost
            cost = replace(cost, moved_elements=2 * tokens + cost.parameters)
        return cost.training() if mode == "training" else cost

    def __str__(self) -> str:
        """Readable and parseable: global, window7, window7-shift3."""
        known = fields(self)  # type: ignore[arg-type]
        head = self.name + "".join(str(getattr(self, field.name)) for field in known[:1])
        others = [field for field in known[1:] if getattr(self, field.name) != field.default]
        return "-".join([head, *(f"{field.name}{getattr(self, field.name)}" for field in others)])


operators: Registry[type[Operator]] = Registry("operator", "vitbench.operators")


def parse_operator(text: str) -> Operator:
    """The operator that str() wrote: a name, its first parameter glued on, others as -name and value."""
    words = [re.fullmatch(r"([a-z_]+?)([0-9]+)?", word) for word in text.split("-")]
    head, rest = words[0], words[1:]
    if head is None or not all(word and word[2] for word in rest):
        raise Refusal(f"operator {text!r} is not of the form name, name7 or name7-parameter3")
    kind = operators[head[1]]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if head[2] and not known:
        raise Refusal(f"operator {head[1]!r} takes no parameter, got {head[2]}")
    given = [(known[0], int(head[2]))] if head[2] else []
    given += [(word[1], int(word[2])) for word in rest if word]
    values = dict(given)
    if len(values) < len(given):
        raise Refusal(f"operator {text!r} gives a parameter twice; expected each once")
    if unknown := sorted(set(values) - set(known)):
        raise Refusal(f"operator {head[1]!r} has no parameter {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    try:
        return kind(**values)
    except TypeError:
        raise Refusal(f"operator {text!r} lacks a value; it takes: {', '.join(known)}") from None


def _block(shape: Shape) -> Cost:
    """A pre-norm block's rest: two LayerNorms, MLP of two products, GELU, two residuals."""
    tokens, dim = shape.batch * shape.tokens, shape.dim
    hidden = MLP_RATIO * dim
    return Cost(
        macs={"mlp": 2 * tokens * dim * hidden},
        # norms 2, biases of the MLP 1 + ratio, GELU ratio, residuals 2
        elementwise=tokens * dim * (2 + 1 + 2 * MLP_RATIO + 2),
        parameters=2 * dim * hidden + hidden + dim + 4 * dim,
    )
