"""One line of evidence, and the file of such lines that a run appends to."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vitbench.refusal import Refusal

SCHEMA = 1
STATES = ("ok", "unsupported", "out_of_memory", "wrong_result", "crashed", "timed_out", "disturbed")
FAULTS = ("wrong_result", "crashed", "timed_out")  # a run that holds one ends non-zero


@dataclass
class Record:
    """One case in one pass. SI units. What was not measured is None, never 0.

    reason: one sentence unless state is ok. seconds: every sample. host_seconds: what the host took to launch each
    (CUDA). exposed: samples whose launching outlasted the spin before it, so that it may be in their device time
    (CUDA). canary: seconds of a fixed product just before and just after the samples. error: largest relative error
    against float64. first_call_seconds: host time of the first call. compile_seconds: of it, what torch spent on
    compiling. asked: the attention kernel that the backend asks for. chosen: what torch's SDPA chose. attended: the
    attention operators that ran. matched: times that the compiler replaced products and softmax by SDPA. ran:
    operators or kernels that took the time. unprobed: why the figures that are taken once are not all there.
    wanted_bytes: the allocation that failed. energy_reason: why there is no energy. telemetry: of the GPU, before and
    after, or the reason why there is none. throttled: what slowed it then. spent: seconds by stage. started: seconds
    since 1970. load: processes wanting a core when it started. environment: id of a line of environment.json.
    """

    id: str
    pass_: int
    case: Mapping[str, Any]
    state: str = "ok"
    reason: str | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, Any] | None = None
    seconds: list[float] | None = None
    host_seconds: list[float] | None = None
    exposed: int | None = None
    canary: list[float] | None = None
    first_call_seconds: float | None = None
    compile_seconds: float | None = None
    error: float | None = None
    peak_bytes: int | None = None
    wanted_bytes: int | None = None
    energy_joules: float | None = None
    energy_reason: str | None = None
    asked: str | None = None
    chosen: list[str] | None = None
    attended: list[str] | None = None
    matched: int | None = None
    ran: list[str] | None = None
    unprobed: str | None = None
    telemetry: Mapping[str, Any] | None = None
    throttled: list[str] | None = None
    spent: dict[str, float] = field(default_factory=dict)
    started: float | None = None
    load: float | None = None
    environment: str | None = None

    def to_dict(self) -> dict[str, Any]:
        line = {"schema": SCHEMA, **asdict(self)}
        line["pass"] = line.pop("pass_")
        return line


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Append one JSON line and flush it to disk. A torn last line, left by a kill, is cut off first."""
    with path.open("a+b") as file:
        _cut_torn_line(file)
        file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path, keys: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """The whole lines of a file, a torn last one left out; none if there is no file.

    A line of a newer schema, one that is no object of JSON, or one that lacks a key raises Refusal.
    """
    if not path.exists():
        return
    for number, text in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise Refusal(f"{path}:{number} is not an object of JSON; move the file away or repair the line")
        schema = line.get("schema", SCHEMA)
        if not isinstance(schema, int) or schema > SCHEMA:
            raise Refusal(f"{path}:{number} has schema {schema}; this vitbench reads up to {SCHEMA}: update it")
        if lacking := [key for key in keys if key not in line]:
            raise Refusal(f"{path}:{number} lacks {lacking[0]!r}; move the file away or repair the line")
        yield line


def _cut_torn_line(file: Any) -> None:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
