"""A run on disk: run.json (what was asked), environment.json (a line each), peaks.json (what the machine attains),
records.jsonl (a line a case and pass), stages.jsonl (what the wall time went into).
"""

from __future__ import annotations

import fcntl
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vitbench.case import Case
from vitbench.evidence import Effort, ended, usable, wanting
from vitbench.plan import Plan
from vitbench.record import STATES, append_line, read_lines
from vitbench.refusal import Refusal

# Without these no record can be read.
RECORD_KEYS = ("id", "pass", "case", "state", "reason", "cost", "seconds", "error", "peak_bytes", "ran")


def read_asked(folder: Path) -> dict[str, Any]:
    """What run.json holds: schema, plan, effort, argv, started. Raises Refusal where it is missing or damaged."""
    path = folder / "run.json"
    try:
        content = json.loads(path.read_bytes())
        plan, _ = content["plan"], content["started"]
        plan["cases"].items(), plan["profile"], content.get("effort", {}).items()
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
        for name, may_lack in (("seconds", line["state"] != "ok"), ("canary", True)):
            if not _times(line.get(name), may_lack):
                raise Refusal(
                    f"{folder / 'records.jsonl'}: {line['id']}: {name} {line[name]!r}; expected seconds above 0"
                )
        yield line


def _times(values: Any, may_lack: bool) -> bool:
    """Whether these are seconds of at least one call, or none where there may be none."""
    if values is None:
        return may_lack
    return isinstance(values, list) and bool(values) and all(isinstance(s, float | int) and s > 0 for s in values)


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


def records_by_case(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Records of each case id that has any, in the order of writing."""
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in read_records(folder):
        lines[line["id"]].append(line)
    return dict(lines)


def wanted(folder: Path, plan: Plan, effort: Effort) -> dict[Case, tuple[set[int], int]]:
    """The cases whose evidence is not enough, each with the passes that are over, and how many are usable."""
    lines = records_by_case(folder)
    found = {case: lines.get(case.id, []) for case in plan.cases}
    return {case: (ended(own), len(usable(own))) for case, own in found.items() if wanting(own, effort)}


def book(folder: Path, stage: str, seconds: float) -> None:
    """Write down what wall time went into: a pass, the peaks, the report."""
    append_line(folder / "stages.jsonl", {"stage": stage, "seconds": round(seconds, 3)})


def read_stages(folder: Path) -> dict[str, float]:
    """Seconds of wall time by stage, repeated ones added up."""
    spent: dict[str, float] = defaultdict(float)
    for line in read_lines(folder / "stages.jsonl", ("stage", "seconds")):
        if not isinstance(line["seconds"], float | int):
            raise Refusal(f"{folder / 'stages.jsonl'}: seconds {line['seconds']!r}; expected a number: remove the line")
        spent[line["stage"]] += line["seconds"]
    return dict(spent)


def read_peaks(folder: Path) -> dict[str, Any]:
    """What the machine attained in this run: macs_per_second by dtype, bytes_per_second; empty if never measured."""
    try:
        found: dict[str, Any] = json.loads((folder / "peaks.json").read_bytes())
        for figure in (*found["macs_per_second"].values(), found["bytes_per_second"]):
            float(figure or 0)
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(f"{folder / 'peaks.json'} is damaged; remove it and go on with the run") from None
    return found


def write_whole(path: Path, content: Mapping[str, Any]) -> None:
    """JSON that is there whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


def agree(folder: Path, plan: Plan, effort: Effort, environment: Mapping[str, Any]) -> None:
    """Write down what is asked and where, or raise Refusal where the folder holds something else.

    The effort may change from one command to the next; the last is kept.
    """
    asked = {"schema": 1, "plan": plan.to_dict(), "argv": sys.argv[1:], "started": time.time()}
    if (folder / "run.json").exists():
        asked = read_asked(folder)
    if asked["plan"] != plan.to_dict():
        raise Refusal(f"{folder} holds another plan (profile, sweeps, device, cache or cases); expected a new folder")
    described = read_environments(folder)
    for line in described.values():
        if line["id"] != environment["id"]:
            aside = ("id", "commit", "dirty")
            differing = [key for key in environment if key not in aside and line.get(key) != environment[key]]
            raise Refusal(f"{folder} was made in another environment ({', '.join(differing)} differ); name a new one")
    write_whole(folder / "run.json", {**asked, "effort": effort.to_dict()})
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
