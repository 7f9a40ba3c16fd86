"""python -m benchmarks.memory: predicted peak bytes of whole models beside those of the CPU's allocator. [--json]

Each model in inference, in forward and backward, and in one iteration with AdamW, at two sizes, with attention written
out and fused. `held` is there before the call: parameters, buffers, inputs, states of the optimiser. Two ratios, of
predicted to measured bytes: of the whole peak, and of what comes above `held`, which is the harder one to meet.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, product
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import nn

from vitbench.exact.watch import tensors
from vitbench.measure.memory import allocations
from vitbench.memory import Setup
from vitbench.refusal import exit_code
from vitbench.source import open_source

BATCH, IMAGES = 2, (224, 288)
FORMS = {"naive": True, "fused": False}  # whether attention is eager
SOURCES = {  # with the forms that they have
    "vit_b_16": ("naive", "fused"),
    "timm:vit_base_patch16_224": ("naive", "fused"),
    "deit_s_16_distilled": ("naive", "fused"),
    "timm:deit_small_distilled_patch16_224": ("naive", "fused"),
    "swin_t": ("naive", "fused"),
    "timm:swin_tiny_patch4_window7_224": ("naive",),
    "convnext_t": ("fused",),
    "timm:convnext_tiny": ("fused",),
}
RUNS = (("inference", ("none",)), ("training", ("none", "adamw")))
MAKE = {
    "sgd": lambda weights: torch.optim.SGD(weights),
    "momentum": lambda weights: torch.optim.SGD(weights, momentum=0.9),
    "adamw": lambda weights: torch.optim.AdamW(weights),
}


def measured(setup: Setup, optimisers: Iterable[str]) -> dict[str, tuple[int, int]]:
    """For each optimiser, bytes held before one call on the CPU (in training, an iteration), and the peak above them.

    In float32. The optimiser of the setup plays no part.
    """
    opened = open_source(setup.source, setup.image, setup.batch, device="cpu", eager=setup.eager)
    module = opened.module.train(setup.mode == "training")
    run = _iterate if module.training else _infer
    run(module, opened.inputs)  # the first makes what libraries keep
    module.zero_grad()
    call = allocations(lambda: run(module, opened.inputs))
    tensors_held = [*module.parameters(), *module.buffers(), *tensors(opened.inputs)]
    held, peak = sum(one.nbytes for one in tensors_held), max(accumulate(call))
    found = {}
    for name in optimisers:
        states, step = (0, 0) if name == "none" else _step(MAKE[name](module.parameters()))
        found[name] = held + states, max(peak, sum(call) + step)
    return found


def _step(optimiser: torch.optim.Optimizer) -> tuple[int, int]:
    """Bytes of its states, and the peak of a step above them. Gradients are there."""
    optimiser.step()  # the first makes the states
    states = sum(one.nbytes for one in tensors(list(optimiser.state.values())))
    return states, max(accumulate(allocations(lambda: optimiser.step())), default=0)


def _infer(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    with torch.no_grad():
        module(*inputs)


def _iterate(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    outputs = [one for one in tensors(module(*inputs)) if one.requires_grad]
    torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])


def compared(setup: Setup, optimisers: Iterable[str] = ("none",)) -> Iterator[dict[str, Any]]:
    """A row for each optimiser: what was run, bytes predicted and measured, their ratios."""
    for optimiser, (held, above) in measured(setup, optimisers).items():
        predicted = replace(setup, optimiser=optimiser).memory()
        beyond = predicted.gradients + predicted.activations
        yield {
            "source": setup.source,
            "image": setup.image,
            "batch": setup.batch,
            "attention": next(form for form, eager in FORMS.items() if eager == setup.eager),
            "mode": setup.mode,
            "optimiser": optimiser,
            "threads": torch.get_num_threads(),
            "predicted_bytes": predicted.peak_bytes,
            "measured_bytes": held + above,
            "ratio": predicted.peak_bytes / (held + above),
            "predicted_above_bytes": beyond,
            "measured_above_bytes": above,
            "ratio_above": beyond / above,
        }


def runs() -> Iterator[tuple[Setup, tuple[str, ...]]]:
    for source, forms in SOURCES.items():
        for side, form in product(IMAGES, forms):
            for mode, optimisers in RUNS:
                yield Setup(source, (side, side), BATCH, mode, eager=FORMS[form]), optimisers


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    shown = track(list(runs()), "measuring", console=Console(stderr=True))
    rows = [row for setup, optimisers in shown for row in compared(setup, optimisers)]
    print(json.dumps(rows, indent=1)) if options.json else Console(highlight=False).print(_table(rows))
    return 0


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "model", "image", "attention", "mode", "optimiser", "predicted", "measured", "ratio", "ratio above held"
    )
    for row in rows:
        told = (row["source"], str(row["image"][0]), row["attention"], row["mode"], row["optimiser"])
        sizes = (f"{row['predicted_bytes']:,}", f"{row['measured_bytes']:,}")
        table.add_row(*told, *sizes, f"{row['ratio']:.5f}", f"{row['ratio_above']:.5f}")
    return table


if __name__ == "__main__":
    sys.exit(exit_code(main))
