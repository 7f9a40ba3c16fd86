"""python -m benchmarks.accuracy: small models trained on scikit-learn's digits: accuracy, MACs and seconds a step.

The digits are 1,797 grey images of 8 x 8 pixels; 70 % of each digit are trained on, the others tell the accuracy. The
grey value stands in all three channels, less the mean and over the spread of the images trained on. ViT takes patches
of 1, 2 and 4 pixels, with learned positions and without. Swin's patches are 4 x 4 pixels: it takes each pixel four
times as high and wide, so that its 8 x 8 tokens are the pixels, as those of ViT with patches of 1. All are trained
alike; depth, rate, batch and epochs were chosen by hand, with these accuracies in sight. Each seed draws weights and
batches anew; the split stays.

Writes accuracy.json into the folder of a run, from which `make report` takes it. macs: of inference, one image.
training_macs: of a step of one batch. accuracies: one a seed. seconds: of steps (forward, loss, backward, update), a
list for each round; in a round the trained models take some steps each in turn, so that what slows the machine slows
all. The rounds are of one process, NOT of several as the passes of a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.digits import CLASSES, SIDE, Digits, digits, said
from vitbench.case import Case
from vitbench.folder import newest, read_asked, write_whole
from vitbench.measure.environment import environment, load
from vitbench.model import Model
from vitbench.models.swin import Swin
from vitbench.models.vit import Vit
from vitbench.program import build
from vitbench.refusal import Refusal, exit_code
from vitbench.shape import Shape, grid_of

FILE, SCHEMA = "accuracy.json", 1
BATCH, EPOCHS, RATE, DECAY = 32, 15, 5e-3, 0.05
ROUNDS, WARM_UP, TIMED = 10, 2, 8  # rounds of timing, steps of each
THREADS = 1  # on tensors this small a second thread only waits for the first


@dataclass(frozen=True)
class Contender:
    """A model and what it is trained on. image: pixels a side that it takes, SIDE or a multiple.

    positions: how it tells places apart.
    """

    name: str
    model: Model
    dim: int
    heads: int
    image: int
    positions: str

    def case(self, batch: int, mode: str = "inference") -> Case:
        side = grid_of(self.image, self.model.pixels())
        return Case(self.model, Shape(batch, side, side, self.dim, self.heads), "sdpa", scope="model", mode=mode)


def _vit(patch: int, positions: str) -> Contender:
    model = Vit(patch, depth=1, hidden=64, classes=CLASSES, pool="mean", positions=positions)
    name = f"vit, patch {patch}" + (", no positions" if positions == "none" else "")
    return Contender(name, model, 32, 4, SIDE, positions)


CONTENDERS = (
    *(_vit(patch, positions) for patch in (4, 2, 1) for positions in ("learned", "none")),
    Contender("swin, window 4", Swin(4, depth=1, classes=CLASSES), 8, 1, 4 * SIDE, "relative"),
)


def batches(data: Digits) -> int:
    """Whole batches of an epoch."""
    return len(data.train) // BATCH


class Training:
    """One model on its way: weights and the order of the images are drawn from the seed."""

    def __init__(self, contender: Contender, data: Digits, seed: int, epochs: int) -> None:
        self.module = build(contender.case(BATCH, "training"), seed=seed).module
        self.data, self.images = data, data.enlarged(contender.image)
        self.draw = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), RATE, weight_decay=DECAY, fused=True)
        rate = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, RATE, total_steps=epochs * batches(data))
        for _ in range(epochs):
            for taken, told in self.batches():
                self.step(taken, told)
                rate.step()

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """An epoch: images and their digits, in whole batches."""
        shuffled = self.data.train[torch.randperm(len(self.data.train), generator=self.draw)]
        for batch in shuffled[: BATCH * batches(self.data)].split(BATCH):
            yield self.images[batch], self.data.digits[batch]

    def step(self, taken: Tensor, told: Tensor) -> None:
        self.optimizer.zero_grad()
        cross_entropy(self.module(taken), told).backward()
        self.optimizer.step()

    def accuracy(self) -> float:
        """Share of the images that were not trained on that it names right."""
        with torch.inference_mode():
            right = self.module(self.images[self.data.test]).argmax(1) == self.data.digits[self.data.test]
        return float(right.double().mean())

    def seconds(self) -> list[float]:
        """Of each of a round's steps, after its warm-up."""
        taken = []
        for images, told in islice(self.batches(), WARM_UP + TIMED):
            start = time.perf_counter()
            self.step(images, told)
            taken.append(round(time.perf_counter() - start, 9))
        return taken[WARM_UP:]


def measure(seeds: int, epochs: int) -> dict[str, Any]:
    """What the file holds."""
    torch.set_num_threads(THREADS)
    where = environment("cpu")  # before torch's compiler, which an optimizer brings in, sets variables of its own
    started, own, data, before = time.perf_counter(), time.process_time(), digits(), load()
    console, wanted = Console(stderr=True), [(one, seed) for seed in range(seeds) for one in CONTENDERS]
    trained = {key: Training(key[0], data, key[1], epochs) for key in track(wanted, "training", console=console)}
    accuracies = {one: [trained[one, seed].accuracy() for seed in range(seeds)] for one in CONTENDERS}
    rounds = [
        {one: trained[one, 0].seconds() for one in CONTENDERS} for _ in track(range(ROUNDS), "timing", console=console)
    ]
    return {
        "schema": SCHEMA,
        "script": "python -m benchmarks.accuracy",
        "data": said(data),
        "training": {
            "seeds": list(range(seeds)),
            "epochs": epochs,
            "optimizer": f"AdamW, one cycle up to a rate of {RATE}, weight decay {DECAY}; no augmentation",
        },
        "environment": where,
        "load": before,
        "wall_seconds": round(time.perf_counter() - started, 3),
        "cpu_seconds": round(time.process_time() - own, 3),
        "rows": [
            _row(one, epochs * batches(data), accuracies[one], [timed[one] for timed in rounds]) for one in CONTENDERS
        ],
    }


def _row(one: Contender, steps: int, accuracies: list[float], seconds: list[list[float]]) -> dict[str, Any]:
    alone, step = one.case(1), one.case(BATCH, "training")
    return {
        "name": one.name,
        "model": str(one.model),
        "kind": one.model.name,
        "image": one.image,
        "patch": one.model.pixels(),
        "positions": one.positions,
        "tokens": alone.shape.tokens,
        "dim": one.dim,
        "heads": one.heads,
        "parameters": alone.cost().parameters,
        "macs": alone.cost().total_macs,
        "training_macs": step.cost().total_macs,
        "batch": BATCH,
        "steps": steps,
        "accuracies": accuracies,
        "seconds": seconds,
        "median_seconds": median(map(median, seconds)),
    }


def main(arguments: list[str] | None = None) -> int:
    """0: written. 2: refused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--run", type=Path, help="folder of the run to write into (default: the newest)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where runs lie")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each model (default: 3)")
    parser.add_argument("--json", action="store_true", help="print what was written")
    options = parser.parse_args(arguments)
    return exit_code(lambda: _measure(options))


def _measure(options: argparse.Namespace) -> int:
    if options.seeds < 1:
        raise Refusal(f"seeds {options.seeds} is less than 1")
    folder = options.run or newest(options.results)
    if folder is None:
        raise Refusal(f"no run under {options.results}; expected one: make bench, or name a run's folder with --run")
    read_asked(folder)  # refuses now what is no run's folder, not after the training
    content = measure(options.seeds, EPOCHS)
    write_whole(folder / FILE, content)
    if options.json:
        print(json.dumps(content, indent=1))
        return 0
    for row in content["rows"]:
        told = f"accuracy {fmean(row['accuracies']):.1%}, {row['macs']:,} MACs an image"
        print(f"{row['name']}: {told}, {1e3 * row['median_seconds']:.2f} ms a step of {row['batch']}")
    print(f"{folder / FILE}, {content['wall_seconds']:.0f} s; python -m analysis report {folder} tells of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
