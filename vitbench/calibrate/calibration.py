"""What a run says of its machine: constants, and how well they tell times that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitbench.calibrate.document import FILE, Calibration
from vitbench.calibrate.fit import HALVES, HeldOut, at_an_end, by_halves, by_sweeps, fit
from vitbench.calibrate.programs import LEAST, Measured, measured
from vitbench.cpu import CACHED_BYTES, CONSTANTS, DTYPE, TILE
from vitbench.folder import read_environments, write_whole
from vitbench.refusal import Refusal

OF_MACHINE = ("id", "cpu", "cores", "threads")  # of the run's environment


def calibrate(folder: Path, told: Callable[[int, int], None]) -> Calibration:
    """Fit the constants to the run's records, score them, and write FILE there. told: as of programs.measured.

    Raises Refusal where the folder holds no run, records of several environments, or too few to fit to.
    """
    cases, left_out = measured(folder, told)
    environments = list(read_environments(folder).values())
    if len(environments) != 1:
        raise Refusal(f"{folder} has records of {len(environments)} environments; expected those of one machine")
    demands, seconds = np.array([one.demand for one in cases]), np.array([one.seconds for one in cases])
    programs, constants = _programs(cases), fit(demands, seconds)
    halves = by_halves(demands, seconds, programs)
    sweeps = by_sweeps(demands, seconds, programs, [one.sweeps for one in cases], LEAST)
    ended = at_an_end(constants)
    found = {
        "schema": 1,
        "device": "cpu",
        "dtype": DTYPE,
        "environment": {name: environments[0].get(name) for name in OF_MACHINE},
        "cases": len(cases),
        "programs": len(set(programs)),
        "left_out": dict(left_out),
        "constants": [
            {
                "name": one.name,
                "unit": one.unit,
                "meaning": one.meaning,
                "value": constants[one.name],
                "low": one.low,
                "high": one.high,
                "at_an_end": ended[one.name],
            }
            for one in CONSTANTS
        ],
        "not_fitted": {"cached_bytes": CACHED_BYTES, "tile": TILE},
        "halves": {"partings": HALVES, **_errors(halves), "by": _by_family(cases, halves)},
        "sweeps": _errors(sweeps),
        "log_error_quantiles": sweeps.quantiles(),
        "times": _times(cases, sweeps),
    }
    write_whole(folder / FILE, found)
    return found


def _programs(cases: Sequence[Measured]) -> list[int]:
    """The number of each case's program."""
    numbers: dict[tuple[float, ...], int] = {}
    return [numbers.setdefault(one.demand, len(numbers)) for one in cases]


def _by_family(cases: Sequence[Measured], held_out: HeldOut) -> list[dict[str, Any]]:
    families = {
        "backend": [one.case.backend.partition(".")[0] for one in cases],
        "scope": [one.case.scope for one in cases],
        "mode": [one.case.mode for one in cases],
    }
    return [
        {"by": by, "name": name, "cases": names.count(name), **_errors(held_out, np.array(names) == name)}
        for by, names in families.items()
        for name in sorted(set(names))
    ]


def _errors(held_out: HeldOut, cases: np.ndarray | None = None) -> dict[str, float | None]:
    median, p90 = held_out.errors(cases) or (None, None)
    return {"median": median, "p90": p90}


def _times(cases: Sequence[Measured], sweeps: HeldOut) -> list[dict[str, Any]]:
    """Each case is held out in one row, or in none."""
    found = []
    for n, one in enumerate(cases):
        (*known,) = sweeps.log_errors[~np.isnan(sweeps.log_errors[:, n]), n]
        predicted = float(one.seconds * np.exp(-known[0])) if known else None
        found.append({"id": one.case.id, "seconds": one.seconds, "predicted": predicted})
    return found
