"""Tiny cases of whatever operators and backends are registered, so that a new one is tested without a new test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from functools import cache
from itertools import product
from typing import Any

from vitbench.attention import Attention
from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.operator import MODES, Operator, operators
from vitbench.shape import Shape

# Two images of a grid that windows of 3 do not divide, with and without a CLS token, d = 16; then grids that more
# numbers divide. An operator's example is the first that it has.
SHAPES = (
    Shape(2, 5, 4, 32, 2, prefix=1),
    Shape(2, 5, 4, 32, 2),
    Shape(2, 6, 6, 32, 2),
    Shape(2, 4, 4, 32, 4),
    Shape(6, 6, 6, 32, 2),
    Shape(2, 8, 8, 32, 2),
)
# Of models in steps of 32 pixels, which would be slow on these: without heads, with heads of 32 features.
COARSE = (Shape(4, 3, 2, 64, 1), Shape(2, 2, 1, 192, 6))
NUMBERS = (3, 2, 1, 4, 6, 8)  # tried for a parameter that must be given, in turn
SMALL = {"depth": 1, "classes": 16}  # of a model: one block takes a twelfth of the time
OTHERS = (1, 2, 3, 4)  # tried for one that has a default, in turn


@cache
def example_operators() -> list[Operator]:
    """Each operator with numbers that one of SHAPES allows, then also each of its defaults changed, words to each."""
    return [example for kind in operators for example in _examples(kind) if example.lacking() is None]


def _examples(kind: type[Operator]) -> list[Operator]:
    known = fields(kind)  # type: ignore[arg-type]
    needed = [field.name for field in known if field.default is MISSING]
    shallow = {field.name: SMALL[field.name] for field in known if field.name in SMALL}
    settings = (dict(zip(needed, values, strict=True)) | shallow for values in product(NUMBERS, repeat=len(needed)))
    plain = next(filter(possible, (kind(**setting) for setting in settings)))
    found = [plain]
    for field in known:
        if field.default is MISSING or field.name in shallow:
            continue
        values: tuple[Any, ...] = kind.choices.get(field.name, OTHERS)
        changed = [replace(plain, **{field.name: value}) for value in values if value != field.default]  # type: ignore[type-var]
        allowed = list(filter(possible, changed))
        found += allowed if field.name in kind.choices else allowed[:1]
    return found


def possible(operator: Operator) -> bool:
    return any(True for _ in _shapes(operator))


def example_shape(operator: Operator) -> Shape:
    """The first of SHAPES that the operator has."""
    return next(_shapes(operator))


def _shapes(operator: Operator) -> Iterator[Shape]:
    scope = operator.scopes[-1]
    return (shape for shape in SHAPES + COARSE * (scope == "model") if operator.refused(shape, scope) is None)


def eager_backends(device: str = "cpu") -> list[str]:
    """Names of the backends that compile nothing and run global attention in half precision on the device."""
    case = Case(operators["global"](), SHAPES[0], "naive", "float16", device)
    return [b.name for b in backends if not b.compiled and refused(replace(case, backend=b.name)) is None]


def cases(
    *,
    dtypes: tuple[str, ...],
    device: str = "cpu",
    scopes: tuple[str, ...] = ("core", "layer", "block", "model"),
    modes: tuple[str, ...] = MODES,
) -> list[Case]:
    """Every operator on every backend, supported there or not, in those of the scopes that it has."""
    return [
        Case(operator, example_shape(operator), backend.name, dtype, device, scope, mode)
        for operator, backend, dtype, scope, mode in product(example_operators(), backends, dtypes, scopes, modes)
        if scope in operator.scopes
    ]


def telling(case: Case) -> bool:
    """Not every option in every dtype and scope: each as a layer or model in float32, an operator's last in all."""
    whole = case.scope in ("layer", "model")
    if case.operator not in {operator.name: operator for operator in example_operators()}.values():
        return whole and case.dtype == "float32"
    return whole or case.dtype == "float32"


def supported(case: Case) -> bool:
    return refused(case) is None


def kind_of_attention(case: Case) -> tuple[object, ...]:
    """What of its attentions could matter to a backend."""

    def traits(one: Attention) -> tuple[object, ...]:
        bias, mask = ([n > 1 for n in size] if size else None for size in (one.bias, one.mask))
        several = (one.groups > 1, one.queries == 1)
        widths = (one.queries == one.keys, one.values == one.head_dim)
        return (*several, *widths, str(bias), str(mask), one.causal, one.scale is None)

    return tuple(map(traits, case.attentions[:2]))
