"""A run's records as one tidy table, a row per case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd

from vitbench.case import Case
from vitbench.evidence import usable
from vitbench.folder import read_asked, read_environments, read_peaks, records_by_case
from vitbench.interval import SETTLED_PASSES, estimate, half_width
from vitbench.metric import metrics
from vitbench.record import STATES
from vitbench.refusal import Refusal

# Column -> what it holds. Printed in results/README.md and, with the metrics, as the glossary of every report.
COLUMNS = {
    "id": "the case; equal cases have equal ids in every run",
    "sweeps": "the sweeps that asked for it",
    "operator": "the mathematics, with its parameters: global, window7-shift3 ...",
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
    "scope": "core (q, k, v given), layer (with projections), block (with norms and MLP) or a whole model",
    "mode": "inference, or training (forward and backward)",
    "copy": "0, or the number of a further measurement of the same thing",
    "load": "processes that wanted a core when it started, the largest of the passes; its own threads count",
    "state": "ok, or the worst that a pass of it came to; times are of the passes that were ok; disturbed if none was",
    "reason": "why, unless ok",
    "seconds": "of one call: median of the passes' medians; empty unless measured and right",
    "low": "seconds, lower end of the 95 % bootstrap interval (over passes, then samples)",
    "high": "seconds, upper end",
    "passes": "fresh processes that measured it",
    "disturbed": "passes without a time, since the machine changed its speed in every take",
    "samples": "timed calls, all passes together",
    "settled": f"at least {SETTLED_PASSES} passes, and an interval no wider than the run was asked for",
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
    "compile_seconds": "of it, spent on compiling, the longest of the passes; caches on disk make it shorter",
    "host_seconds": "host time to launch one call on CUDA, median of the samples",
    "exposed": "samples that may hold launch latency, since launching took longer than foreseen (CUDA)",
    "throttled": "what slowed the GPU around the samples, by NVML's names; empty where NVML does not say",
    "energy_joules": "of one call, from the GPU's own counter over at least a second; empty where there is none",
    "by_pass": "median seconds of each pass, for ratios within passes",
    "canary_by_pass": "seconds of a fixed product around each of those passes",
    "asked": "attention kernel that the backend asks for; empty if it leaves the choice to torch",
    "chosen": "what torch's SDPA chose",
    "attended": "attention kernels that ran",
    "matched": "times that the compiler replaced products and softmax by SDPA",
    "ran": "operators or kernels that took the time, longest first",
    "attainable_macs_per_second": "of a large square product of that dtype, the fastest seen in this run",
    "attainable_bytes_per_second": "read and written by a large copy, the fastest seen in this run",
}


@dataclass(frozen=True)
class Run:
    """cases: the columns of COLUMNS and of the metrics, a row per case of the plan. environment: of the records.

    plan, effort: as asked; effort is empty in runs before 0.2.
    """

    folder: Path
    cases: pd.DataFrame
    environment: Mapping[str, Any]
    plan: Mapping[str, Any]
    effort: Mapping[str, Any]


def load(folder: Path) -> Run:
    """Read a run's folder. Raises Refusal where it is none, or where its records are of several environments."""
    asked, environments = read_asked(folder), read_environments(folder)
    if len(environments) > 1:
        raise Refusal(f"{folder} mixes {len(environments)} environments; expected the records of one")
    plan, effort, peaks, lines = asked["plan"], asked.get("effort", {}), read_peaks(folder), records_by_case(folder)
    rows = [_row(lines[id_], sweeps, effort, peaks) for id_, sweeps in plan["cases"].items() if id_ in lines]
    cases = pd.DataFrame(rows, columns=[*COLUMNS, *(metric.name for metric in metrics)])
    figures = [*_FIGURES, *(metric.name for metric in metrics)]
    cases[figures] = cases[figures].apply(pd.to_numeric)  # what was measured nowhere is NaN, not an object
    return Run(folder, cases, next(iter(environments.values()), {}), plan, effort)


def _row(
    lines: list[dict[str, Any]], sweeps: list[str], effort: Mapping[str, Any], peaks: Mapping[str, Any]
) -> dict[str, Any]:
    case, state, used = Case.from_dict(lines[0]["case"]), _state(lines), usable(lines)
    row = {
        "id": case.id,
        "sweeps": sweeps,
        "operator": str(case.operator),
        **{name: getattr(case.shape, name) for name in _OF_SHAPE},
        **{name: getattr(case, name) for name in ("backend", "dtype", "device", "scope", "mode", "copy")},
        "load": max(_all(lines, "load"), default=None),
        "state": state,
        "reason": next(line["reason"] for line in lines if line["state"] == state),
        "disturbed": len(_passes(lines, "disturbed") - _passes(lines, *(set(STATES) - {"disturbed"}))),
        **_times({line["pass"]: line["seconds"] for line in used}, effort.get("precision")),
        **_costs(lines),
        **{name: next(iter(_all(lines, name)), None) for name in _PROBED},
        "first_call_seconds": _median(_all(lines, "first_call_seconds")),
        "compile_seconds": max(_all(lines, "compile_seconds"), default=None),
        "host_seconds": _median([second for taken in _all(used, "host_seconds") for second in taken]),
        "exposed": sum(_all(used, "exposed")) if _all(used, "exposed") else None,
        "throttled": _union(_all(used, "throttled")),
        "canary_by_pass": {line["pass"]: fmean(line["canary"]) for line in used if line.get("canary")},
        "attainable_macs_per_second": peaks.get("macs_per_second", {}).get(case.dtype),
        "attainable_bytes_per_second": peaks.get("bytes_per_second"),
    }
    return {**row, **{metric.name: metric.value(row) for metric in metrics}}


_OF_SHAPE = ("batch", "height", "width", "prefix", "tokens", "dim", "heads")
_PROBED = ("peak_bytes", "error", "energy_joules", "asked", "chosen", "attended", "matched", "ran")
_FIGURES = ["seconds", "low", "high", "macs", "pair_macs", "peak_bytes", "closed_peak_bytes", "error", "load"]
_FIGURES += ["first_call_seconds", "compile_seconds", "host_seconds", "exposed", "energy_joules", "matched"]
_FIGURES += ["attainable_macs_per_second", "attainable_bytes_per_second"]
_COPIED = ("score_elements", "useful_score_elements", "elementwise", "parameters", "moved_bytes")


def _passes(lines: list[dict[str, Any]], *states: str) -> set[int]:
    return {line["pass"] for line in lines if line["state"] in states}


def _state(lines: list[dict[str, Any]]) -> str:
    """The worst that a pass came to; a disturbed pass says nothing of the case where another was ok."""
    states: set[str] = {line["state"] for line in lines}
    return max(states - {"disturbed"} or states, key=STATES.index)


def _times(taken: dict[int, list[float]], precision: float | None) -> dict[str, Any]:
    """Estimate and interval of the passes that are to be used, by pass."""
    interval = estimate(list(taken.values())) if taken else None
    seconds, low, high = interval or (None, None, None)
    narrow = interval is not None and (precision is None or half_width(interval) <= precision)
    return {
        "seconds": seconds,
        "low": low,
        "high": high,
        "passes": len(taken),
        "samples": sum(map(len, taken.values())),
        "settled": narrow and len(taken) >= SETTLED_PASSES,
        "by_pass": {pass_: median(values) for pass_, values in taken.items()},
    }


def _costs(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Closed forms, as the records hold them."""
    cost: dict[str, Any] = next((line["cost"] for line in lines if line["cost"]), {})
    return {
        "macs": sum(cost["macs"].values()) if cost else None,
        "pair_macs": sum(cost["macs"].get(term, 0) for term in ("scores", "mix")) if cost else None,
        **{name: cost.get(name) for name in _COPIED},
        "closed_peak_bytes": cost.get("peak_bytes"),
    }


def _all(lines: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """What the records hold under that name, where they hold anything."""
    return [line[name] for line in lines if line.get(name) is not None]


def _union(found: list[list[str]]) -> list[str] | None:
    return sorted({word for words in found for word in words}) if found else None


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
