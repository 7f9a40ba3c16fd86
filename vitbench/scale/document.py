"""The JSON of `vitbench scale --json`, as docs/json.md says.

MACs are integers, of the whole batch, inference; 1 MAC = 2 FLOPs. What is not whole is a string, "22/7"; what is not
known is null.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from vitbench.scale.growth import Scale
from vitbench.scale.half import Half
from vitbench.scale.law import Law
from vitbench.scale.points import PARTS
from vitbench.scale.polynomial import Exact, Polynomial
from vitbench.scale.waste import over

SCHEMA = 1


def as_json(scale: Scale) -> dict[str, Any]:
    """As docs/json.md says."""
    found, halved = scale.law, scale.half
    return {
        "schema": SCHEMA,
        "source": scale.source,
        "batch": scale.batch,
        "method": "closed form" if scale.on_paper else "counted",
        "own_image": scale.own_image,
        "law": _law(found) if found else None,
        "half": _half(halved) if halved else None,
        "sizes": rows(scale),
        "skipped": scale.skipped,
        "findings": [{"image": one.image, "kind": one.kind, "line": one.line} for one in scale.findings],
    }


def rows(scale: Scale) -> list[dict[str, Any]]:
    """A flat one for each size."""
    found = scale.law
    return [
        {
            "image": point.image,
            "tokens": _exact(found.tokens.count(point.image)) if found else None,
            "macs": point.macs,
            **{part: getattr(point, part) for part in PARTS},
            "parameters": point.parameters,
            "law": _exact(found.macs(point.image)) if found else None,
            "over": over(found, point),
        }
        for point in scale.sizes
    ]


def _law(found: Law) -> dict[str, Any]:
    polynomials = {**found.parts, "total": found.total}
    tokens = found.tokens
    return {
        "tokens": {"what": tokens.what, "pixels": _exact(tokens.pixels), "prefix": tokens.prefix},
        "variable": found.variable,
        **{part: _coefficients(one) for part, one in polynomials.items()},
        "period": found.period,
        "fitted": list(found.fitted),
        "verified": list(found.verified),
    }


def _half(halved: Half) -> dict[str, Any]:
    return {
        "limit": float(halved.limit),
        "from_the_first": halved.from_the_first,
        "at": halved.at,
        "about": halved.x,
        "image": halved.image,
    }


def _coefficients(found: Polynomial) -> list[int | str]:
    return [_exact(one) for one in found.coefficients]


def _exact(value: Exact) -> int | str:
    value = Fraction(value)
    return value.numerator if value.denominator == 1 else str(value)
