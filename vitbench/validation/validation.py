"""Published speeds against what the time model tells of them: scores, constants, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from vitbench.knowledge import fitted_to, known
from vitbench.refusal import Refusal
from vitbench.regions import compiled
from vitbench.step import Trace
from vitbench.validation.fit import BASELINES, DATASHEET, OURS, Measured, Score, named
from vitbench.validation.kernels import Kernels
from vitbench.validation.speeds import Speed, Table
from vitbench.validation.traces import Wanted, family, traces
from vitbench.work import PRODUCTS

SCHEMA = 1
LEFT_OUT = ("family", "card")
FITTED = 200  # tables of this torch and newer are fitted to; older ones only scored


def validate(tables: Sequence[Table], folder: Path, told: Callable[[int, int], None]) -> dict[str, Any]:
    """folder: where traces are kept. told: as of traces. What docs/json.md says of validation.json.

    Raises Refusal for a table without a model that has attention and can be traced.
    """
    wanted = {_wanted(table, one) for table in tables for one in table.speeds}
    found = traces((one for one in wanted if family(one.model)), folder, told)
    measured = [_measured(table, found, True) for table in tables]
    for one in measured:
        if not one.speeds:
            wants = "models that timm has and that have softmax attention"
            raise Refusal(f"{one.table.name} has none to fit to among {len(one.table.speeds)} speeds; expected {wants}")
    scores, rows, constants = [], [], []
    for one in measured:
        others = [other for other in measured if _alike(one, other)]
        for model in (OURS, DATASHEET, *BASELINES):
            held = {"family": model.without_family(one, others), "card": model.of_others(one, others)}
            if model is OURS:
                held["table"] = _committed(one)
            scores += [_score(one, model.name, left_out, seconds) for left_out, seconds in held.items()]
            if model is OURS:
                rows += _rows(one, {name: held[name] for name in LEFT_OUT}, True)
        rest = _measured(one.table, found, False)
        rows += _rows(
            rest, {"family": _of_attention(rest, (one, *others)), "card": OURS.of_others(rest, others)}, False
        )
    for of_compiler in (False, True):
        fitted = [one for one in measured if one.table.compiled is of_compiler and one.table.torch >= FITTED]
        if fitted:
            constants.append(_fitted(fitted))
    return {
        "schema": SCHEMA,
        "tables": [_described(one, found) for one in measured],
        "constants": constants,
        "scores": scores,
        "rows": rows,
    }


def _wanted(table: Table, one: Speed) -> Wanted:
    return Wanted(one.model, one.image, table.eager, table.halves)


def _alike(one: Measured, other: Measured) -> bool:
    """Whether the times of the other may tell those of the one: of another card, run in the same way."""
    first, second = one.table, other.table
    return first.card != second.card and (first.eager, first.compiled) == (second.eager, second.compiled)


def _committed(one: Measured) -> np.ndarray | None:
    """Seconds by the constants that predictions use; None for a table that these were fitted to."""
    knowledge = known(one.table.card, compiled=one.table.compiled)
    known_of = knowledge.level == "fitted" and one.table.name not in fitted_to()
    return one.predicted(knowledge.constants) if known_of else None


def _of_attention(rest: Measured, every: Sequence[Measured]) -> np.ndarray:
    """Seconds of rows without attention from those with some, of other families where a family has both."""
    told = OURS.tell(rest, OURS.fit(*_whole(every)))
    for family_ in set(rest.families) & {name for one in every for name in one.families}:
        held = rest.families == family_
        told[held] = OURS.tell(rest, OURS.fit(every, [one.families != family_ for one in every]))[held]
    return told


def _whole(tables: Sequence[Measured]) -> tuple[Sequence[Measured], list[np.ndarray]]:
    return tables, [np.ones(len(one.seconds), bool) for one in tables]


def _measured(table: Table, found: Mapping[Wanted, Trace], attention: bool) -> Measured:
    """The rows with attention, or those without."""
    pairs = [(one, found.get(_wanted(table, one))) for one in table.speeds]
    kept = [(one, trace) for one, trace in pairs if trace and trace.attends is attention]
    calls, macs, outputs = [], [], []
    for one, trace in kept:
        works = list((compiled(trace, table.whole_masks) if table.compiled else trace).works(one.batch))
        calls.append(works)
        macs.append(sum(work.macs for work in works))
        made = [part for step in trace.steps if step.kind in PRODUCTS for part in step.made]
        outputs.append(sum(prod(part.shape) for part in made) * one.batch / trace.batch)
    return Measured(
        table,
        [one for one, _ in kept],
        np.array([family(one.model) for one, _ in kept]),
        Kernels(calls),
        np.array([one.seconds for one, _ in kept]),
        np.array(macs, float),
        np.array(outputs, float),
    )


def _score(one: Measured, method: str, left_out: str, seconds: np.ndarray | None) -> dict[str, Any]:
    """left_out: family, card, or the table itself. seconds: None where there is nothing else to tell them from."""
    score = None if seconds is None else Score.of(seconds, one.seconds)
    told = None if score is None else asdict(score)
    return {"table": one.table.name, "method": method, "left_out": left_out, "score": told}


def _rows(one: Measured, held: Mapping[str, np.ndarray | None], attention: bool) -> list[dict[str, Any]]:
    return [
        {
            "table": one.table.name,
            "model": speed.model,
            "image": speed.image,
            "batch": speed.batch,
            "family": str(one.families[n]),
            "attention": attention,
            "seconds": speed.seconds,
            "predicted": {name: _number(told, n) for name, told in held.items()},
        }
        for n, speed in enumerate(one.speeds)
    ]


def _number(told: np.ndarray | None, row: int) -> float | None:
    return None if told is None or np.isnan(told[row]) else float(told[row])


def _fitted(tables: Sequence[Measured]) -> dict[str, Any]:
    return {
        "compiled": tables[0].table.compiled,
        "tables": [one.table.name for one in tables],
        "values": named(OURS.fit(*_whole(tables))),
    }


def _described(one: Measured, found: Mapping[Wanted, Trace]) -> dict[str, Any]:
    table = one.table
    untraced = [speed.model for speed in table.speeds if _wanted(table, speed) not in found]
    return {
        "name": table.name,
        "card": table.card,
        "torch": table.torch,
        "compiled": table.compiled,
        "speeds": len(table.speeds),
        "with_attention": len(one.speeds),
        "untraced": untraced,
    }
