"""Figures as people read them; everything stored is in SI units."""

from __future__ import annotations

import math

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float | None, unit: str, digits: int = 3) -> str:
    """12.3 ms, 1.23 GMAC, 4.56 MB; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return f"0 {unit}"
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= f), _PREFIXES[-1])
    return f"{number(value / factor, digits)} {prefix}{unit}"


def number(value: float | None, digits: int = 3) -> str:
    """To that many significant digits, without an exponent."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def seconds(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """12.3 ms (12.1 to 12.6), the interval in the same unit."""
    text = quantity(value, "s")
    if value is None or low is None or high is None or math.isnan(value):
        return text
    factor = next((f for f, _ in _PREFIXES if abs(value) >= f), 1e-9)
    return f"{text} ({number(low / factor)} to {number(high / factor)})"


def ratio(value: float, low: float | None = None, high: float | None = None) -> str:
    """2.31x (2.20 to 2.42)."""
    if math.isnan(value):
        return "-"
    text = f"{number(value)}x"
    if low is None or high is None or math.isnan(low):
        return text
    return f"{text} ({number(low)} to {number(high)})"


def percent(value: float, low: float, high: float) -> str:
    """31.2% (30.1% to 32.5%)."""
    if math.isnan(value):
        return "-"
    return f"{value:.1%}" if math.isnan(low) else f"{value:.1%} ({low:.1%} to {high:.1%})"


def share(value: float | None) -> str:
    """31.2%; a dash where there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.1%}"
