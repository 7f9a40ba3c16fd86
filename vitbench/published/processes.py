"""Counts the models of a published table in two processes."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from vitbench.published.counts import Job, Recount, recount
from vitbench.refusal import Refusal

PROCESSES = 2
LIMIT = 300.0  # seconds within which one of the models in hand must be counted
FEW = 16  # models, which one process counts before another has imported torch


class Counting:
    """Processes that count. One that dies or hangs costs the model in its hands alone."""

    def __init__(self) -> None:
        self.workers: dict[Connection, SpawnProcess] = {}

    def of(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Recount | str]]:
        """Each in the order of being done: its count, or why there is none."""
        waiting, hands = list(reversed(jobs)), dict[Connection, Job]()
        while waiting or hands:
            while waiting and (free := self._free(hands, len(waiting))):
                hands[free] = waiting.pop()
                free.send(hands[free])
            done = wait(hands, timeout=LIMIT)
            if not done:  # each in hand had all that time
                yield from [(hands.pop(one), self._given_up(one)) for one in [*hands]]
            for ready in done:
                assert isinstance(ready, Connection)
                try:
                    result: Recount | str = ready.recv()
                except (EOFError, OSError):
                    self.workers.pop(ready).join()
                    result = "the process that counted it ended"
                yield hands.pop(ready), result

    def _free(self, hands: Mapping[Connection, Job], left: int) -> Connection | None:
        idle = next((one for one in self.workers if one not in hands), None)
        if idle is None and (not self.workers or (left > FEW and len(self.workers) < PROCESSES)):
            return self._start()
        return idle

    def _start(self) -> Connection:
        context = get_context("spawn")
        mine, its = context.Pipe()
        process = context.Process(target=_serve, args=(its,), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for this process alone
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        its.close()
        self.workers[mine] = process
        return mine

    def _given_up(self, worker: Connection) -> str:
        process = self.workers.pop(worker)
        process.kill()
        process.join()
        worker.close()
        return f"no count within {LIMIT:g} seconds"

    def end(self) -> None:
        for process in self.workers.values():
            process.kill()
            process.join()


@contextmanager
def counting() -> Iterator[Counting]:
    """Ends its processes at once, whatever they are at."""
    found = Counting()
    try:
        yield found
    finally:
        found.end()


def _serve(jobs: Connection) -> None:
    """Counts what comes until nothing will."""
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  # of what libraries say of their models
    import torch

    from vitbench.source import said

    torch.set_num_threads(1)
    while True:
        try:
            job = jobs.recv()
        except EOFError:
            return
        try:
            jobs.send(recount(*job))
        except Exception as error:
            jobs.send(str(error) if isinstance(error, Refusal) else said(error))
