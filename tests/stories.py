"""What the tests of faults find: each fault is done here to a real run, side by side with others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import psutil
import pytest
from bench import LIMIT, Bench, Outcome

from vitbench.record import SCHEMA

MEMORY = 12 * 10**9  # bytes of address space; torch alone takes some of them
BLOCK, ROOM = 4096, 1500  # bytes: of a small disk's blocks; left in the last one, when a record takes 2500
HANGS = 20  # seconds without a record, of a worker that has begun


@dataclass(frozen=True)
class Told:
    """One fault. before: records.jsonl when it struck; after: at the end. outcomes: of the commands, in order."""

    before: bytes
    after: bytes
    healthy: set[str]  # ids of the cases that nothing was wrong with
    outcomes: tuple[Outcome, ...]

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.after.splitlines()]

    @property
    def next(self) -> dict[str, Any]:
        """The record that followed those of before."""
        return self.lines[self.before.count(b"\n")]

    def lost(self) -> int:
        """Earlier records that are gone or changed, and healthy cases that have no time.

        Where others use the cores, a case may be `disturbed`: measured, though not to be relied on.
        """
        earlier = self.before.splitlines()
        gone = sum(one != other for one, other in zip_longest(earlier, self.after.splitlines()[: len(earlier)]))
        measured = {line["id"] for line in self.lines if line["state"] in ("ok", "disturbed") and line["seconds"]}
        return gone + len(self.healthy - measured)


def tell(bench: Bench, before: bytes, *outcomes: Outcome) -> Told:
    return Told(before, bench.records(), bench.healthy(), outcomes)


def faulty_backends(bench: Bench) -> dict[str, Told]:
    limited = replace(bench, around=("sh", "-c", f'ulimit -v {MEMORY // 1024}; exec "$0" "$@"'))
    outcome = limited.bench("--case-limit", str(HANGS), sweeps=("faults", "healthy"))
    kept = {path.suffix[1:]: path.read_bytes() for path in bench.folder.glob("before.*")}
    return {name: tell(bench, before, outcome) for name, before in kept.items()}


def worker_killed(bench: Bench) -> dict[str, Told]:
    with bench.held("--max-passes", "2") as (process, worker):
        before = bench.records()
        os.kill(worker, signal.SIGKILL)
        outcome = bench.finish(process)
    return {"worker killed": tell(bench, before, outcome)}


def stopped(bench: Bench) -> dict[str, Told]:
    """One run: a second command on its folder, Ctrl-C, kill -9, a torn line; then it ends, and finds a newer record.

    From all of it fvcore is hidden.
    """
    (bench.home / "sitecustomize.py").write_text('import sys\nsys.modules["fvcore"] = None\n')
    bench = replace(bench, variables={"PYTHONPATH": str(bench.home)})
    with bench.held() as (process, pid):
        worker, first = psutil.Process(pid), bench.records()
        second = bench.bench()
        undisturbed = process.poll() is None and worker.is_running() and bench.records() == first
        assert undisturbed, "a refused command disturbed the first"
        assert str(bench.folder / "lock") in [file.path for file in worker.open_files()], "the worker holds no lock"
        ended = bench.finish(process, signal.SIGINT)
        assert not worker.is_running(), "the worker outlived Ctrl-C"

    with bench.held(after=first.count(b"\n") + 2) as (process, pid):
        worker, later = psutil.Process(pid), bench.records()
        killed = bench.finish(process, signal.SIGKILL)
        psutil.wait_procs([worker], timeout=LIMIT)
        assert not worker.is_running(), "the worker outlived its supervisor"

    path, line = bench.folder / "records.jsonl", later.splitlines()[-1]
    path.write_bytes(later + line[: len(line) // 2])  # as a kill in the middle of writing leaves it
    resumed = bench.bench()
    found = {
        "two": tell(bench, first, second, resumed),
        "Ctrl-C": tell(bench, first, ended, resumed),
        "supervisor killed": tell(bench, later, killed, resumed),
        "torn": tell(bench, later, resumed),
        "missing": tell(bench, b"", resumed),
    }
    newer = bench.records() + json.dumps({**json.loads(line), "schema": SCHEMA + 1}).encode() + b"\n"
    path.write_bytes(newer)
    return {**found, "newer": tell(bench, newer, bench.bench())}


@contextmanager
def small_disk(bench: Bench) -> Iterator[Bench]:
    """The run folder on a disk of 1 MiB, in a mount namespace that ends with the story."""
    mount = ("sh", "-c", 'mount -t tmpfs -o size=1m tmpfs "$0" && echo mounted && exec cat', str(bench.home / "run"))
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    for flags in ("-m",), ("-U", "-r", "-m"):
        with subprocess.Popen(["unshare", *flags, *mount], cwd=bench.project, text=True, **pipes) as keeper:
            if keeper.stdout.readline() == "mounted\n":
                enter = ["-U", "--preserve-credentials"] if "-U" in flags else []
                around = ("nsenter", "-t", str(keeper.pid), "-m", "-w", *enter)
                yield replace(bench, around=around, root=Path(f"/proc/{keeper.pid}/root")).prepare()
                return
    pytest.skip("neither root nor a user namespace may mount a small disk here")


def pad(records: Path) -> bytes:
    """Adds the last record again, blanks before its line break: its block then has room for a note, but for no record.

    What is there stays: the supervisor, which reads new bytes alone, may or may not have seen it.
    """
    content = records.read_bytes()
    again = content.splitlines()[-1]
    again += b" " * (-(len(content) + len(again) + 1 + ROOM) % BLOCK) + b"\n"
    with records.open("ab") as file:
        file.write(again)
    return content + again


def full_disk(bench: Bench) -> dict[str, Told]:
    with small_disk(bench) as small:
        ballast = small.folder / "ballast"
        with small.held() as (process, _):
            before = pad(small.folder / "records.jsonl")
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(BLOCK))
            small.release()
            full = small.finish(process)
        ballast.unlink()
        return {"full disk": tell(small, before, full, small.bench())}
