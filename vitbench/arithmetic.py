"""The operations of the closed forms that Python's operators do not give alike for every algebra.

A closed form is written once and takes Python integers, NumPy integer arrays or SymPy expressions.
"""

from __future__ import annotations

from typing import Any

Number = Any  # int, NumPy integer array or SymPy expression


def ceil_div(a: Number, b: Number) -> Number:
    """Smallest integer not below a / b."""
    return -(-a // b)


def smaller(a: Number, b: Number) -> Number:
    """Elementwise minimum of a and b."""
    if isinstance(a, int) and isinstance(b, int):
        return a if a < b else b
    if hasattr(a, "free_symbols") or hasattr(b, "free_symbols"):
        import sympy

        return sympy.Min(a, b)
    import numpy

    return numpy.minimum(a, b)


def larger(a: Number, b: Number) -> Number:
    """Elementwise maximum of a and b."""
    return -smaller(-a, -b)


def quotient(a: Number, b: Number) -> Number:
    """a / b where b divides a."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return a / b if hasattr(a, "free_symbols") or hasattr(b, "free_symbols") else a // b


def ever_positive(a: Number) -> bool:
    """Whether an integer, any of an array, or a formula that is not 0 is more than 0; none is negative."""
    if hasattr(a, "free_symbols"):
        return bool(a != 0)
    return bool((a > 0).any()) if hasattr(a, "any") else bool(a > 0)
