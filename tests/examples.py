"""Tiny cases of whatever operators and backends are registered, so that a new one is tested without a new test."""

from __future__ import annotations

from dataclasses import MISSING, fields
from itertools import product

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.operator import MODES, SCOPES, Operator, operators
from vitbench.shape import Shape

# Two images of a grid that windows of 3 do not divide, with and without a CLS token; d = 16.
SHAPES = (Shape(2, 5, 4, 32, 2, prefix=1), Shape(2, 5, 4, 32, 2))


def example_operators() -> list[Operator]:
    """Each operator with 3 for every value that it needs, then also with 1 for every value that has a default."""
    found = []
    for kind in operators:
        known = fields(kind)  # type: ignore[arg-type]
        needed = {field.name: 3 for field in known if field.default is MISSING}
        optional = {field.name: 1 for field in known if isinstance(field.default, int)}
        found += [kind(**needed), kind(**needed, **optional)] if optional else [kind(**needed)]
    return found


def example_shape(operator: Operator) -> Shape:
    """The first of SHAPES that the operator has."""
    return next(shape for shape in SHAPES if operator.unsupported(shape) is None)


def eager_backends(device: str = "cpu") -> list[str]:
    """Names of the backends that compile nothing and run global attention in half precision on the device."""
    case = Case(operators["global"](), SHAPES[0], "naive", "float16", device)
    return [b.name for b in backends if not b.compiled and b.unsupported(case) is None]


def cases(
    *, dtypes: tuple[str, ...], device: str = "cpu", scopes: tuple[str, ...] = SCOPES, modes: tuple[str, ...] = MODES
) -> list[Case]:
    """Every operator on every backend, supported there or not."""
    return [
        Case(operator, example_shape(operator), backend.name, dtype, device, scope, mode)
        for operator, backend, dtype, scope, mode in product(example_operators(), backends, dtypes, scopes, modes)
    ]


def supported(case: Case) -> bool:
    return backends[case.backend].unsupported(case) is None
