"""The contract of an operator on paper: the mathematics of one attention layer and its closed forms.

No torch here and in vitbench/operators/: the program that must cost this stands in vitbench/layers/.
"""

from __future__ import annotations

import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import prod
from typing import ClassVar

from vitbench.arithmetic import Number
from vitbench.attention import Attention, Size, Stage
from vitbench.cost import Cost, total
from vitbench.refusal import Refusal
from vitbench.registry import Registry
from vitbench.shape import Shape

SCOPES = ("core", "layer", "block", "model")
MODES = ("inference", "training")
MLP_RATIO = 4  # hidden width of a block's MLP over dim (Dosovitskiy 2021, table 1; Liu 2021, section 3.3)


class Operator(ABC):
    """A frozen dataclass that holds the operator's own parameters, ints or words; all methods are closed forms.

    Its docstring's first line says in one line what it is. A parameter is never named as a field of Shape or Case.
    """

    name: ClassVar[str]
    paper: ClassVar[str]  # authors, year, section or equation
    scopes: ClassVar[tuple[str, ...]] = ("core", "layer", "block")  # core: only with softmax attention
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # the words that each parameter of words may be
    prefixed: ClassVar[bool] = True  # False: its tokens are those of a grid alone
    packages: ClassVar[tuple[str, ...]] = ()  # optional ones that its program is built from
    rough: ClassVar[tuple[str, ...]] = ()  # dtypes whose rounding its gradients magnify beyond any comparison

    @abstractmethod
    def attentions(self, shape: Shape) -> tuple[Attention, ...]:
        """The softmax attentions in the order in which the layer hands them to its backend; none: it has no softmax."""

    @abstractmethod
    def around(self, shape: Shape) -> Cost:
        """All that the layer does beside its softmax attentions, and the layer's parameters."""

    def inputs(self, shape: Shape) -> tuple[Size, ...]:
        """Sizes of what the layer takes."""
        return ((shape.batch, shape.tokens, shape.dim),)

    def outputs(self, shape: Shape) -> tuple[Size, ...]:
        """Sizes of what the layer gives; one tensor, or a tuple of several."""
        return self.inputs(shape)[:1]

    def held(self, shape: Shape) -> int | None:
        """Elements that the layer's program holds beside q, k, v while it attends: a rearranged copy of its input.

        None: not known, so neither is the layer's peak memory.
        """
        return None

    def unsupported(self, shape: Shape) -> str | None:
        """Why this operator has no such shape, in one sentence; None if it has."""
        return None

    def refused(self, shape: Shape, scope: str = "layer") -> str | None:
        """Why there is no such case of it, whatever runs it, in one sentence; None if there is."""
        for field, words in self.choices.items():
            if getattr(self, field) not in words:
                return f"unknown {field} {getattr(self, field)!r}; known: {', '.join(words)}"
        if reason := self._unscoped(scope) or shape.unsupported() or self.unsupported(shape):
            return reason
        if self.prefixed or not shape.prefix:
            return None
        return (
            f"{self.name} runs on a grid, which has no place for prefix tokens; expected prefix 0, not {shape.prefix}"
        )

    def lacking(self) -> str | None:
        """Why its program cannot be built here, with the remedy; None if it can. Its cost is known all the same."""
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                return f"{self.name} needs {package}, which is not installed: pip install {' '.join(self.packages)}"
        return None

    def _unscoped(self, scope: str) -> str | None:
        if scope in self.scopes:
            return None
        return f"{self.name} has no scope {scope!r}; known: {', '.join(self.scopes)}"

    def stages(self, shape: Shape) -> Mapping[str, Stage]:
        """All that it does, in order: attentions and around of a layer."""
        return {"layer": Stage(self.attentions(shape), (self.around(shape),))}

    def cost(self, shape: Shape, scope: str = "layer", mode: str = "inference") -> Cost:
        """Closed form for one batch. scope: one of the operator's. mode: inference or training."""
        if reason := self._unscoped(scope):
            raise Refusal(reason)
        if scope == "core":
            cores = [*map(Attention.cost, self.attentions(shape))]
            cost, moved = total((1, cores)), sum(core.moved_elements for core in cores)
        else:
            rest = [block(shape, MLP_RATIO * shape.dim)] if scope == "block" else []
            cost = total(*map(Stage.costs, self.stages(shape).values()), (1, rest))
            moved = sum(map(prod, self.inputs(shape) + self.outputs(shape))) + cost.parameters
        cost = Cost(*cost[:-1], moved)
        return cost.training() if mode == "training" else cost

    def __str__(self) -> str:
        """Readable and parseable: global, window7, window7-shift3, non_local-kind=dot."""
        known = fields(self)  # type: ignore[arg-type]
        glued = known[:1] if known and known[0].default is MISSING and known[0].type == "int" else ()
        head = self.name + "".join(str(getattr(self, field.name)) for field in glued)
        others = [field for field in known[len(glued) :] if getattr(self, field.name) != field.default]
        return "-".join([head, *(f"{one.name}{'=' * (one.type == 'str')}{getattr(self, one.name)}" for one in others)])


operators: Registry[type[Operator]] = Registry("operator", "vitbench.operators", "vitbench.models")


def parse_operator(text: str) -> Operator:
    """The operator that str() wrote: a name, its first number glued on, others as -name and number, or -name=word."""
    words = [re.fullmatch(r"([a-z_]+?)(?:([0-9]{1,9})|=([a-z_]+))?", word) for word in text.split("-")]
    head, rest = words[0], words[1:]
    if head is None or head[3] or not all(word and (word[2] or word[3]) for word in rest):
        raise Refusal(f"operator {text!r} is not of the form name, name7, name7-parameter3 or name-parameter=word")
    kind = operators[head[1]]
    known = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
    if head[2] and "int" not in list(known.values())[:1]:
        raise Refusal(
            f"operator {head[1]!r} takes no {'number' if known else 'parameter'} after its name, got {head[2]}"
        )
    given: list[tuple[str, int | str]] = [(next(iter(known)), int(head[2]))] if head[2] else []
    given += [(word[1], int(word[2]) if word[2] else word[3]) for word in rest if word]
    values = dict(given)
    if len(values) < len(given):
        raise Refusal(f"operator {text!r} gives a parameter twice; expected each once")
    for name, value in values.items():
        if name not in known:
            raise Refusal(f"operator {head[1]!r} has no parameter {name!r}; known: {', '.join(known) or 'none'}")
        if type(value).__name__ != known[name]:
            expected = f"{name}7" if known[name] == "int" else f"{name}=word"
            raise Refusal(f"operator {text!r} gives {name} as {value!r}; expected -{expected}")
    try:
        return kind(**values)
    except TypeError:
        raise Refusal(f"operator {text!r} lacks a value; it takes: {', '.join(known)}") from None


def block(shape: Shape, hidden: Number) -> Cost:
    """A pre-norm block's rest: two LayerNorms, MLP of two products, GELU, two residuals.

    hidden: width of the MLP's hidden layer.
    """
    tokens, dim = shape.batch * shape.tokens, shape.dim
    return Cost(
        macs={"mlp": 2 * tokens * dim * hidden},
        elementwise=tokens * (5 * dim + 2 * hidden),  # norms 2, residuals 2, bias; bias and GELU of the hidden layer
        parameters=2 * dim * hidden + hidden + dim + 4 * dim,
    )
