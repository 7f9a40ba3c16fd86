"""`python -m benchmarks` as a user runs it, in a copy of the project that also holds the backends of faulty.py."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vitbench.folder import book
from vitbench.run import ROOT

SWEEPS = {  # every case of `faults` is one fault, but naive, which is right as those of `healthy` are
    "faults": """question = "What does a fault cost?"
[[grid]]
backend = [
    "naive", "faulty.memory", "faulty.segfault", "faulty.abort", "faulty.hang", "faulty.nan", "faulty.wrong",
    "faulty.nothing",
]
batch = 1
scope = "core"
""",
    "healthy": """question = "Is all the rest measured?"
[[grid]]
backend = "faulty.held"
batch = [1, 2, 3, 4, 5, 6]
[[grid]]
backend = "naive"
batch = 1
""",
}
SHAPE = 'profiles = ["smoke"]\noperator = "global"\nheight = 1\nwidth = 8\ndim = 16\nheads = 2\n'
WORDS = ("--profile", "smoke", "--device", "cpu", "--max-passes", "1")
HEALTHY = (".naive.", ".faulty.held.")
PEAKS = {"macs_per_second": {"float32": 1e9}, "bytes_per_second": 1e9}  # measuring them takes seconds, and no fault
LIMIT = 300  # seconds for what takes some: a test that waits longer has failed


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def copy_project(to: Path) -> Path:
    """With the sweeps above in place of the project's own, but for what it measures with every run."""
    for name in ("vitbench", "analysis", "benchmarks"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", to)
    shutil.copy(ROOT / "tests" / "faulty.py", to / "vitbench" / "backends")
    folder = to / "benchmarks" / "sweeps"
    for path in folder.glob("*.toml"):
        if path.stem != "calibration":
            path.unlink()
    for name, text in SWEEPS.items():
        (folder / f"{name}.toml").write_text(text.replace("[[grid]]\n", f"[[grid]]\n{SHAPE}"))
    return to


@dataclass(frozen=True)
class Bench:
    """One run folder. home: holds it as run/. around: what the command is run by. root: where it sees home.

    variables: of its environment.
    """

    project: Path
    home: Path
    around: tuple[str, ...] = ()
    root: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.root / (self.home / "run").relative_to("/")

    def prepare(self) -> Bench:
        """The run folder as it is once the machine's peaks are measured."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "peaks.json").write_text(json.dumps(PEAKS))
        book(self.folder, "peaks", 0.0)
        return self

    def records(self) -> bytes:
        path = self.folder / "records.jsonl"
        return path.read_bytes() if path.exists() else b""

    def healthy(self) -> set[str]:
        """Ids of the cases that nothing is wrong with."""
        asked: dict[str, Any] = json.loads((self.folder / "run.json").read_text())["plan"]["cases"]
        return {id for id, by in asked.items() if set(by) & set(SWEEPS) and any(name in id for name in HEALTHY)}

    @contextmanager
    def started(self, *words: str, sweeps: tuple[str, ...] = ("healthy",), **variables: str) -> Iterator[Any]:
        command = [*self.around, sys.executable, "-m", "benchmarks", *WORDS, "--run", str(self.home / "run"), *words]
        command += [word for name in sweeps for word in ("--sweep", name)]
        own = {"STORY": str(self.home), "OMP_NUM_THREADS": "1", **self.variables, **variables}
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def finish(self, process: subprocess.Popen[str], ending: signal.Signals | None = None) -> Outcome:
        """Its outcome, after a signal if one is given."""
        if ending is not None:
            process.send_signal(ending)
        out, err = process.communicate(timeout=LIMIT)
        return Outcome(process.returncode, out, err)

    def bench(self, *words: str, **rest: Any) -> Outcome:
        """The whole command."""
        with self.started(*words, **rest) as process:
            return self.finish(process)

    @contextmanager
    def held(self, *words: str, after: int = 2) -> Iterator[tuple[Any, int]]:
        """A command whose worker, so many records on, waits in the middle of a case; and that worker's process id."""
        for name in ("held", "go"):
            (self.home / name).unlink(missing_ok=True)
            os.mkfifo(self.home / name)
        pipe = os.open(self.home / "held", os.O_RDONLY | os.O_NONBLOCK)
        with self.started(*words, HELD_AFTER=str(after)) as process, os.fdopen(pipe) as said:
            ended = os.pidfd_open(process.pid)
            ready, _, _ = select.select([pipe, ended], [], [], LIMIT)
            os.close(ended)
            assert ready == [pipe], process.stderr.read() if ready else "the worker came to no case that waits"
            yield process, int(said.read())

    def release(self) -> None:
        (self.home / "go").write_bytes(b"")
