"""Backends that go wrong, each in one way. bench.py puts this file into a copy of the project.

STORY in the environment names a folder; the run is in run/ there.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitbench.backend import backends
from vitbench.backends.naive import Naive
from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.shape import Shape

if TYPE_CHECKING:
    from torch import Tensor


class Faulty(Naive):
    """Keeps what was recorded so far beside it, then spoils the right result."""

    description = "goes wrong"

    def __init__(self) -> None:
        self.name = f"faulty.{type(self).__name__.lower()}"

    def attend(self, q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        records = Path(os.environ["STORY"], "run", "records.jsonl")
        before = records.with_name(f"before.{self.name}")
        if not before.exists():
            shutil.copyfile(records if records.exists() else os.devnull, before)
        return self.spoil(super().attend(q, k, v, **given))

    def spoil(self, right: Tensor) -> Tensor:
        raise NotImplementedError


class Memory(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        return right.new_empty(resource.getrlimit(resource.RLIMIT_AS)[0] // right.itemsize)


class Segfault(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        ctypes.string_at(0)
        return right


class Abort(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        os.abort()


class Hang(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        threading.Event().wait()
        return right


class Nan(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        return right * float("nan")


class Wrong(Faulty):
    def spoil(self, right: Tensor) -> Tensor:
        return right * 1.001


class Nothing(Faulty):
    """Writes nothing. Its n-th result lies where the n-th of `naive` on the same case in this process lay.

    An allocator may do that to freed memory of the same size, again and again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory: list[Tensor] | None = None

    def spoil(self, right: Tensor) -> Tensor:
        import torch

        if self.memory is None:
            self.memory = results_of_naive(right)
        return self.memory.pop(0) if self.memory else torch.empty_like(right)


def results_of_naive(like: Tensor) -> list[Tensor]:
    """Of its first call and its check, in order."""
    from vitbench.check import error
    from vitbench.program import build

    results = []

    def attend(*inputs: Tensor, **rest: Tensor | None) -> Tensor:
        results.append(backends["naive"].attend(*inputs, **rest))
        return results[-1]

    batch, _, heads, tokens, depth = like.shape
    case = Case(Global(), Shape(batch, 1, tokens, heads * depth, heads), "naive", scope="core")
    program = build(case, attend=attend)
    program.call()
    assert error(case, program) < 1e-5
    return results


class Held(Naive):
    """Right. Once the run has HELD_AFTER records, says in the story's pipe `held` who waits, and waits for `go`."""

    name = "faulty.held"

    def attend(self, q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        story = Path(os.environ["STORY"])
        held, records, after = story / "held", story / "run" / "records.jsonl", os.environ.get("HELD_AFTER")
        if after and held.exists() and records.exists() and records.read_bytes().count(b"\n") >= int(after):
            with held.open("w") as pipe:
                held.unlink()  # the next process is not to wait
                pipe.write(str(os.getpid()))
            (story / "go").read_bytes()
        return super().attend(q, k, v, **given)


for kind in (Memory, Segfault, Abort, Hang, Nan, Wrong, Nothing, Held):
    backends.add(kind())
