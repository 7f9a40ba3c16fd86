"""The children of an audit: one process a counter, some at a time, all ended with the audit."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import IO, Any

Found = dict[str, Any]
Key = tuple[str, str]  # counter and place
MODULE = "vitbench.audits.worker"
BASELINE, NEXT = "baseline", "what came next"
JOBS = 4  # at once, at most, and one a core, each with one thread


def all_answers(
    keys: Iterable[Key], source: str, image: tuple[int, int] | None, limit: float
) -> Generator[tuple[Key, list[Found]]]:
    """What the worker of each counter and place answered, as they end; all end with this.

    limit: seconds that one answer may take.
    """
    running, pool = Children(), ThreadPoolExecutor(min(JOBS, len(os.sched_getaffinity(0))))
    waiting: dict[Future[list[Found]], Key] = {}
    try:
        for counter, place in keys:
            request = {"counter": counter, "place": place, "source": source, "image": image}
            waiting[pool.submit(running.ask, request, limit)] = counter, place
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for one in done:
                yield waiting.pop(one), one.result()
    finally:
        running.end()
        pool.shutdown(cancel_futures=True)


class Children:
    """Processes that run, so that all can be ended at once."""

    def __init__(self) -> None:
        self.lock, self.ended = threading.Lock(), False
        self.running: set[subprocess.Popen[str]] = set()

    def ask(self, request: Found, limit: float) -> list[Found]:
        """The answers of a worker, the baseline first; the last says why there are no more, where it died or hung."""
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            with self.lock:
                if self.ended:
                    return []
                child = _start(request, log)
                self.running.add(child)
            found, reason = list[Found](), None
            try:
                for answer in _answers(child, limit):
                    found.append(answer)
                if child.wait(limit):
                    reason = _how(child.returncode, log)
            except (TimeoutError, subprocess.TimeoutExpired):
                reason = f"no count within {limit:g} seconds"
            finally:
                _end(child)
                with self.lock:
                    self.running.discard(child)
        return [*found, {"step": NEXT if found else BASELINE, "reason": reason}] if reason else found

    def end(self) -> None:
        with self.lock:
            self.ended = True
            for child in self.running:
                _end(child)


def _start(request: Found, log: IO[str]) -> subprocess.Popen[str]:
    """In a session of its own, so that Ctrl-C reaches the parent alone, which ends it."""
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, json.dumps(request)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _answers(child: subprocess.Popen[str], limit: float) -> Iterator[Found]:
    """As they come. Raises TimeoutError where one takes longer than the limit."""
    lines = queue.SimpleQueue[str]()

    def read() -> None:
        assert child.stdout is not None
        with child.stdout as stdout:
            for line in stdout:
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=limit)
        except queue.Empty as error:
            raise TimeoutError from error
        if not line:
            return
        yield json.loads(line)


def _end(child: subprocess.Popen[str]) -> None:
    """With all that it started, which share its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _how(code: int, log: IO[str]) -> str:
    """Why it ended before its time, in words."""
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return f"its process {ended}" + (f": {lines[-1]}" if lines else "")
