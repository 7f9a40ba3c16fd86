"""A run's records as one tidy table, a row per case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from analysis.interval import SETTLED_PASSES, estimate
from vitbench.case import Case
from vitbench.folder import read_asked, read_environments, read_records
from vitbench.record import STATES
from vitbench.refusal import Refusal

# Column -> what it holds. Printed as the glossary of every report and in results/README.md.
COLUMNS = {
    "id": "the case; equal cases have equal ids in every run",
    "sweeps": "the sweeps that asked for it",
    "operator": "the mathematics: global, or window with its size and shift",
    "backend": "what executes the attention",
    "batch": "images",
    "height": "tokens along the grid's first side",
    "width": "tokens along its second side",
    "prefix": "tokens beside the grid (CLS, registers)",
    "tokens": "N, of one image: prefix + height x width",
    "dim": "D, features of a token",
    "heads": "H",
    "dtype": "of inputs and weights",
    "device": "cpu or cuda",
    "scope": "core (q, k, v given), layer (with projections) or block (with norms and MLP)",
    "mode": "inference, or training (forward and backward)",
    "load": "processes that wanted a core when it started, the largest of the passes; its own threads count",
    "state": "ok, or the worst that a pass of it came to; times are of the passes that were ok",
    "reason": "why, unless ok",
    "seconds": "of one call: median of the passes' medians; empty unless measured and right",
    "low": "seconds, lower end of the 95 % bootstrap interval (over passes, then samples)",
    "high": "seconds, upper end",
    "passes": "fresh processes that measured it",
    "samples": "timed calls, all passes together",
    "settled": f"at least {SETTLED_PASSES} passes",
    "macs": "multiply-accumulates of one call, closed form; 1 MAC = 2 FLOPs",
    "pair_macs": "those among them of the pair terms, scores and mix",
    "score_elements": "query-key pairs over all heads and groups, as computed",
    "useful_score_elements": "those that the mask allows and that join two real tokens",
    "elementwise": "output elements of softmaxes, biases, norms, activations and residuals, which are no MACs",
    "parameters": "trainable weights",
    "moved_bytes": "the fewest bytes that must cross memory: inputs, weights and outputs, once each",
    "closed_peak_bytes": "bytes held at the peak of inference above inputs and weights, closed form; empty if unknown",
    "peak_bytes": "the same, measured",
    "error": "largest error of the result (and gradients) against float64, relative to the largest magnitude",
    "first_call_seconds": "host time of the first call, compiling included, median of the passes",
    "by_pass": "median seconds of each pass, for ratios within passes",
    "ran": "operators or kernels that took the time, longest first",
    "images_per_second": "batch / seconds",
    "macs_per_second": "macs / seconds",
}


@dataclass(frozen=True)
class Run:
    """cases: the columns of COLUMNS, a row per case of the plan. environment: of the records. plan: as asked."""

    folder: Path
    cases: pd.DataFrame
    environment: Mapping[str, Any]
    plan: Mapping[str, Any]


def load(folder: Path) -> Run:
    """Read a run's folder. Raises Refusal where it is none, or where its records are of several environments."""
    plan = read_asked(folder)["plan"]
    environments = read_environments(folder)
    if len(environments) > 1:
        raise Refusal(f"{folder} mixes {len(environments)} environments; expected the records of one")
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in read_records(folder):
        lines[line["id"]].append(line)
    rows = [_row(lines[id_], sweeps) for id_, sweeps in plan["cases"].items() if lines[id_]]
    cases = pd.DataFrame(rows, columns=list(COLUMNS))
    cases[_FIGURES] = cases[_FIGURES].apply(pd.to_numeric)  # what was measured nowhere is NaN, not an object
    return Run(folder, cases, next(iter(environments.values()), {}), plan)


def _row(lines: list[dict[str, Any]], sweeps: list[str]) -> dict[str, Any]:
    case = Case.from_dict(lines[0]["case"])
    cost: dict[str, Any] = next((line["cost"] for line in lines if line["cost"]), {})
    worst = max(lines, key=lambda line: STATES.index(line["state"]))
    wrong = any(line["state"] == "wrong_result" for line in lines)  # then there is no time
    samples = {line["pass"]: line["seconds"] for line in lines if line["state"] == "ok" and not wrong}
    seconds, low, high = estimate(list(samples.values())) if samples else (None, None, None)
    macs = sum(cost["macs"].values()) if cost else None
    return {
        "id": case.id,
        "sweeps": sweeps,
        "operator": str(case.operator),
        **{
            name: getattr(case.shape, name) for name in ("batch", "height", "width", "prefix", "tokens", "dim", "heads")
        },
        **{name: getattr(case, name) for name in ("backend", "dtype", "device", "scope", "mode")},
        "load": max((line["load"] for line in lines if line.get("load") is not None), default=None),
        "state": worst["state"],
        "reason": worst["reason"],
        "seconds": seconds,
        "low": low,
        "high": high,
        "passes": len(samples),
        "samples": sum(map(len, samples.values())),
        "settled": len(samples) >= SETTLED_PASSES,
        "macs": macs,
        "pair_macs": sum(cost["macs"].get(term, 0) for term in ("scores", "mix")) if cost else None,
        **{name: cost.get(name) for name in _COPIED},
        "closed_peak_bytes": cost.get("peak_bytes"),
        **{name: _first(lines, name) for name in ("peak_bytes", "error", "ran")},
        "by_pass": {pass_: median(values) for pass_, values in samples.items()},
        "first_call_seconds": _median(lines, "first_call_seconds"),
        "images_per_second": case.shape.batch / seconds if seconds else None,
        "macs_per_second": macs / seconds if seconds and macs else None,
    }


_FIGURES = ["seconds", "low", "high", "macs", "pair_macs", "peak_bytes", "closed_peak_bytes", "error"]
_FIGURES += ["first_call_seconds", "images_per_second", "macs_per_second", "load"]
_COPIED = ("score_elements", "useful_score_elements", "elementwise", "parameters", "moved_bytes")


def _first(lines: list[dict[str, Any]], name: str) -> Any:
    return next((line[name] for line in lines if line[name] is not None), None)


def _median(lines: list[dict[str, Any]], name: str) -> float | None:
    values = [line[name] for line in lines if line.get(name) is not None]
    return float(pd.Series(values).median()) if values else None
