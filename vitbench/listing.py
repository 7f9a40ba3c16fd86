"""What there is, by kind: for `vitbench list`. Imports neither torch nor any table library."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from vitbench.backend import backends
from vitbench.counter import counters
from vitbench.devices import Card, cards
from vitbench.metric import metrics
from vitbench.model import models
from vitbench.operator import Operator, operators
from vitbench.sweep import load_sweeps

Entry = dict[str, Any]  # name, line, source where there is one, and what else a kind has


def _operators() -> list[Entry]:
    return [_operator(kind) for kind in operators if "model" not in kind.scopes]


def _operator(kind: type[Operator]) -> Entry:
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    parameters = {name: None if field.default is MISSING else field.default for name, field in known.items()}
    return {
        "name": kind.name,
        "line": first_line(kind),
        "source": kind.paper,
        "written": _written(kind.name, parameters, kind.choices),
        "parameters": parameters,
        "choices": {name: list(words) for name, words in kind.choices.items()},
        "scopes": list(kind.scopes),
    }


def _written(name: str, parameters: Mapping[str, Any], choices: Mapping[str, Any]) -> str:
    """As a sweep writes it: window<window>[-shift0]."""
    parts = [name]
    for parameter, default in parameters.items():
        if default is None and len(parts) == 1:
            parts.append(f"<{parameter}>")
        elif parameter in choices:
            parts.append(f"[-{parameter}={'|'.join(choices[parameter])}]")
        else:
            parts.append(f"-{parameter}<{parameter}>" if default is None else f"[-{parameter}{default}]")
    return "".join(parts)


def _models() -> list[Entry]:
    return [
        {
            "name": variant.name,
            "line": f"{variant.model}, D = {variant.dim}, {variant.heads} heads, images of {variant.image}",
            "source": variant.source,
        }
        for variant in models
    ]


def _devices() -> list[Entry]:
    return [
        {
            "name": card.name,
            "line": f"{card.title}: {_figures(card)}",
            "source": card.source,
        }
        for card in cards().values()
    ]


def _figures(card: Card) -> str:
    """Of its datasheet, in units that people use."""
    peaks = ", ".join(f"{flops / 1e12:g} in {dtype}" for dtype, flops in card.flops.items())
    memory = "" if card.memory is None else f", {card.memory / 1e9:g} GB"
    cache = "" if card.l2 is None else f", {card.l2 / 2**20:g} MiB of L2"
    return f"TFLOP/s {peaks}; {card.bandwidth / 1e9:g} GB/s{memory}{cache}"


def _backends() -> list[Entry]:
    return [{"name": backend.name, "line": backend.description} for backend in backends]


def _counters() -> list[Entry]:
    lines = {counter.name: first_line(type(counter), inspect.getmodule(counter)) for counter in counters}
    return [{"name": name, "line": line} for name, line in lines.items()]


def _metrics() -> list[Entry]:
    return [{"name": metric.name, "line": metric.description} for metric in metrics]


def _sweeps() -> list[Entry]:
    return [{"name": sweep.name, "line": sweep.question} for sweep in load_sweeps().values()]


KINDS: dict[str, Callable[[], list[Entry]]] = {
    "operators": _operators,
    "models": _models,
    "backends": _backends,
    "counters": _counters,
    "metrics": _metrics,
    "sweeps": _sweeps,
    "devices": _devices,
}


def first_line(documented: Any, otherwise: Any = None) -> str:
    """Of its own docstring, or of the other's."""
    text = documented.__dict__.get("__doc__") or getattr(otherwise, "__doc__", None) or ""
    return text.strip().partition("\n")[0]


def page(entries: list[Entry]) -> str:
    """For people: name and line; where there is a source, the name alone, then line and source."""
    width = max((len(entry["name"]) for entry in entries), default=0) + 2
    lines = []
    for entry in entries:
        if "source" in entry:
            told = (entry["line"], entry["source"])
            lines.append(str(entry.get("written", entry["name"])))
            lines += [f"    {line}" for text in told for line in textwrap.wrap(text, 116)]
        else:
            first, *rest = textwrap.wrap(entry["line"], 118 - width)
            lines += [f"{entry['name']:<{width}}{first}", *(f"{'':<{width}}{line}" for line in rest)]
    return "\n".join(lines)
