"""The worker of an audit: one counter on one source, in a process of its own; a line of JSON for each step.

    python -m vitbench.audits.worker '{"counter": "fvcore", "place": "device", "source": "vit_b_16", "image": null}'

The first step is the baseline: eval, no_grad, fused attention. Each further one changes one thing that must not change
the count. What counters print goes to stderr.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vitbench.audits.digest import digest
from vitbench.counter import Uncountable, counters
from vitbench.model import models
from vitbench.program import Program
from vitbench.refusal import Refusal
from vitbench.source import Opened, is_builtin, open_source, said

EXACT = "exact"
GRAD: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "grad": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


@dataclass(frozen=True)
class AsItIs(Program):
    """Called in the mode that the module is in and the grad mode at hand."""

    def call(self, gradients: tuple[torch.Tensor, ...] | None = None) -> Any:
        return self.module(*self.inputs)


@dataclass(frozen=True)
class Step:
    """name: of what differs from the baseline. place, grad and mode: as reasons ask for them."""

    name: str
    grad: str = "no_grad"
    mode: str = "eval"
    eager: bool = False
    place: str = "device"


def steps(place: str, elsewhere: bool, grads: bool = True) -> list[Step]:
    """The baseline, then what must not change the count. elsewhere: the other place among them; grads: grad modes."""
    found = [Step("baseline", place=place), Step("twice in a row", place=place)]
    found += [Step(grad, grad=grad, place=place) for grad in ("grad", "inference_mode") if grads]
    found += [Step("train", mode="train", place=place), Step("eager", eager=True, place=place)]
    other = {"device": "meta", "meta": "device"}[place]
    return [*found, Step(other, place=other)] if elsewhere else found


class Worker:
    """Counts a source as a step asks. The module is kept while steps take the same one."""

    def __init__(self, counter: str, source: str, image: tuple[int, int] | None) -> None:
        self.counter, self.source, self.image = counter, source, image
        self.opened: dict[tuple[str, bool], Opened] = {}
        self.prepared = counter == EXACT

    def open(self, step: Step) -> Opened:
        key = "cpu" if step.place == "device" else "meta", step.eager
        if key not in self.opened:
            self.opened = {key: open_source(self.source, self.image, device=key[0], eager=key[1])}
        return self.opened[key]

    def count(self, step: Step) -> dict[str, Any]:
        opened = self.open(step)
        opened.module.train(step.mode == "train")
        self.prepare()
        with GRAD[step.grad](), Peak() as peak:
            since = time.perf_counter()
            found = self.exact(opened) if self.counter == EXACT else self.counted(opened)
            seconds = time.perf_counter() - since
        return {**found, "image": opened.image, "seconds": seconds, "peak_bytes": peak.bytes}

    def counted(self, opened: Opened) -> dict[str, Any]:
        count = counters[self.counter].count(AsItIs(opened.module, opened.inputs, training=False))
        raw = count.macs if count.raw is None else count.raw
        return {"macs": count.macs, "number": raw, "uncounted": [*count.uncounted]}

    def exact(self, opened: Opened) -> dict[str, Any]:
        """The count, and what reasons select from, in one call: its seconds are those of both."""
        found = digest(opened)
        return {"macs": found["macs"], "number": found["macs"], "uncounted": found["uncounted"], "digest": found}

    def prepare(self) -> None:
        """What a counter imports and sets up at its first count is not the model's."""
        if not self.prepared:
            tiny = torch.nn.Linear(1, 1)
            with torch.no_grad():
                counters[self.counter].count(AsItIs(tiny, (torch.zeros(1, 1),), training=False))
            self.prepared = True

    def closed(self, step: Step) -> int | None:
        """The MACs of a model of the suite, by its closed form."""
        if not is_builtin(self.source):
            return None
        variant = models[self.source]
        return int(variant.model.cost(variant.shape(self.open(step).image), "model").total_macs)


class Peak:
    """bytes: growth of this process's peak of resident memory inside, above what is resident on entry.

    None where the system does not tell.
    """

    bytes: int | None = None

    def __enter__(self) -> Peak:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        self.before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        after = _status("VmHWM")
        if self.before is not None and after is not None:
            self.bytes = max(0, after - self.before)


def _status(key: str) -> int | None:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if key == "VmHWM" else None


def answers(counter: str, place: str, source: str, image: list[int] | None) -> Iterator[dict[str, Any]]:
    """One for each step: the count, or the reason why there is none. "refusal": nothing can be counted."""
    worker = Worker(counter, source, (image[0], image[1]) if image else None)
    elsewhere = counter != EXACT and len(counters[counter].audited) == 1
    for step in steps(place, elsewhere, grads=counter != EXACT):  # the exact count sets its own grad mode
        about = {"step": step.name, "setting": {"place": step.place, "grad": step.grad, "mode": step.mode}}
        try:
            found = worker.count(step)
            if counter == EXACT and step.name == "baseline":
                found["closed"] = worker.closed(step)
        except Refusal as refusal:
            if step.eager:
                continue  # this source has no such switch
            yield {**about, "refusal": str(refusal)}
            if step.name == "baseline":
                return
        except Uncountable as error:
            yield {**about, "reason": str(error)}
        except Exception as error:
            yield {**about, "reason": said(error)}
        else:
            yield {**about, **found}


def _end_with_parent() -> None:
    """Whoever asked may be killed, and cannot end this process then."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main(request: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what packages print must not stand among the answers
    for found in answers(**json.loads(request)):
        print(json.dumps(found), file=answer)
    answer.close()
    os._exit(0)  # torch and DeepSpeed take seconds to take themselves down


if __name__ == "__main__":
    main(sys.argv[1])
