"""A run on disk: run.json (what was asked), environment.json (a line each), records.jsonl (a line a case and pass)."""

from __future__ import annotations

import fcntl
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitbench.case import Case
from vitbench.record import STATES, append_line, read_lines
from vitbench.refusal import Refusal

# Without these no record can be read.
RECORD_KEYS = ("id", "pass", "case", "state", "reason", "cost", "seconds", "error", "peak_bytes", "ran")


@dataclass(frozen=True)
class Plan:
    """What a run is to do. passes: records wanted of each case. seconds: of samples, a case and pass."""

    profile: str
    sweeps: tuple[str, ...]
    device: str
    passes: int
    seconds: float
    seed: int
    cases: tuple[Case, ...]
    asked_by: tuple[tuple[str, ...], ...]  # of each case, the sweeps that ask for it

    def to_dict(self) -> dict[str, Any]:
        rest = {name: getattr(self, name) for name in ("profile", "device", "passes", "seconds", "seed")}
        asked = {case.id: list(sweeps) for case, sweeps in zip(self.cases, self.asked_by, strict=True)}
        return {**rest, "sweeps": list(self.sweeps), "cases": asked}


def read_asked(folder: Path) -> dict[str, Any]:
    """What run.json holds: schema, plan, argv, started. Raises Refusal where it is missing or damaged."""
    path = folder / "run.json"
    try:
        content = json.loads(path.read_bytes())
        plan, _ = content["plan"], content["started"]
        plan["cases"].items(), plan["profile"]
    except FileNotFoundError:
        raise Refusal(f"{folder} holds no run.json; expected the folder of a run") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(f"{path} is damaged; move the folder away or name another") from None
    found: dict[str, Any] = content
    return found


def read_records(folder: Path) -> Iterator[dict[str, Any]]:
    """Every record, in the order of writing. Raises Refusal where a line is damaged or of a newer schema."""
    for line in read_lines(folder / "records.jsonl", RECORD_KEYS):
        if line["state"] not in STATES:
            raise Refusal(f"{folder / 'records.jsonl'}: unknown state {line['state']!r}; known: {', '.join(STATES)}")
        yield line


def read_environments(folder: Path) -> dict[str, dict[str, Any]]:
    """Environments by id. Raises Refusal where records name one that is not described."""
    described = {line["id"]: line for line in read_lines(folder / "environment.json", ("id",))}
    if missing := {line.get("environment") for line in read_records(folder)} - set(described):
        raise Refusal(
            f"{folder / 'environment.json'} does not describe {sorted(map(str, missing))[0]}, which records name"
        )
    return described


def recorded(folder: Path) -> set[tuple[str, int]]:
    """(case id, pass) of every record in the folder."""
    return {(line["id"], line["pass"]) for line in read_records(folder)}


def complete(folder: Path, plan: Plan) -> bool:
    done = recorded(folder)
    return all((case.id, pass_) in done for case in plan.cases for pass_ in range(plan.passes))


def agree(folder: Path, plan: Plan, environment: Mapping[str, Any]) -> None:
    """Write down what is asked and where, or raise Refusal where the folder holds something else."""
    if not (folder / "run.json").exists():
        content = {"schema": 1, "plan": plan.to_dict(), "argv": sys.argv[1:], "started": time.time()}
        partial = folder / "run.json.partial"
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(folder / "run.json")
    if read_asked(folder)["plan"] != plan.to_dict():
        raise Refusal(f"{folder} holds another plan (profile, sweeps, device, passes or cases); expected a new folder")
    described = read_environments(folder)
    for line in described.values():
        if line["id"] != environment["id"]:
            aside = ("id", "commit", "dirty")
            differing = [key for key in environment if key not in aside and line.get(key) != environment[key]]
            raise Refusal(f"{folder} was made in another environment ({', '.join(differing)} differ); name a new one")
    if not described:
        append_line(folder / "environment.json", environment)


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """One supervisor a folder; yields the file descriptor that holds the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a+")
    except OSError as error:
        raise Refusal(f"results folder {folder} cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"{folder} is in use by another run; wait for it or name another folder") from None
        yield lock.fileno()


def newest(results: Path, pattern: str = "*") -> Path | None:
    """The run of that name pattern that was started last; None if there is none. Damaged folders are passed over."""
    started = {}
    for path in results.glob(f"{pattern}/run.json"):
        try:
            started[path.parent] = float(read_asked(path.parent)["started"])
        except (Refusal, ValueError, TypeError):
            continue
    return max(started, key=lambda folder: started[folder], default=None)
