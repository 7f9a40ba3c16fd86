"""The programs on paper against what is traced of the programs themselves: kernels, bytes, memory, time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitbench import gpu
from vitbench.case import Case
from vitbench.devices import card
from vitbench.ledger.program import Ledger, known, ledger
from vitbench.ledger.tape import Kernels
from vitbench.model import Variant, models
from vitbench.program import build
from vitbench.refusal import Refusal
from vitbench.source import Opened
from vitbench.step import BYTES, Trace
from vitbench.trace import trace
from vitbench.work import Work

FUSED_ON_CPU = "_scaled_dot_product_flash_attention_for_cpu"
CPU = Kernels(sums=True)
START = {one.name: one.start for one in gpu.CONSTANTS}


def variant(name: str, window: int | None = None, depth: int | None = None) -> Variant:
    """Its window and the blocks of its third stage, or of all of it, replaced."""
    model: Any = models[name].model
    given = {key: value for key, value in (("window", window), ("depth", depth)) if value is not None}
    return replace(models[name], model=replace(model, **given))


def opened(chosen: Variant, image: int, batch: int, backend: str) -> Opened:
    program = build(Case(chosen.model, chosen.shape(image, batch), backend, scope="model"), device="meta")
    return Opened(chosen.name, program.module.requires_grad_().eval(), program.inputs, (image, image))


def grouped(works: Iterable[Work]) -> dict[tuple[Any, ...], tuple[float, ...]]:
    """MACs, bytes read and written, launches of what is alike."""
    found: dict[tuple[Any, ...], np.ndarray] = defaultdict(lambda: np.zeros(4))
    for work in works:
        name = "scaled_dot_product_attention" if work.operator == FUSED_ON_CPU else work.operator
        key = (name, work.kind, work.dtype, int(work.inner), work.strided)
        found[key] += (work.macs, work.read, work.written, work.launches)
    return {key: tuple(sums) for key, sums in found.items() if sums[-1]}


def hold(told: Ledger, seen: Trace, module: Opened) -> None:
    assert grouped(told.works) == grouped(seen.works())
    assert told.activation_bytes == pytest.approx(seen.activation_bytes, rel=2e-3)
    parameters, buffers = [*module.module.parameters()], [*module.module.buffers()]
    assert told.parameters == sum(one.numel() for one in parameters)
    assert told.macs == sum(step.macs for step in seen.steps)
    size = BYTES["float16" if seen.dtype == "float16" else "float32"]
    elements = sum(one.numel() for one in (*parameters, *module.inputs))
    assert told.fixed_bytes == size * elements + sum(one.nbytes for one in buffers)


VIT, TWO_HEADS, SWIN = variant("vit_ti_32", depth=3), variant("deit_ti_16_distilled", depth=2), variant("swin_t")


@pytest.mark.parametrize(
    ("chosen", "image", "batch", "backend", "dtype"),
    [
        (VIT, 96, 1, "naive", "amp"),
        (VIT, 96, 3, "naive", "amp"),
        (VIT, 96, 3, "naive", "float32"),
        (VIT, 224, 2, "sdpa", "amp"),
        (TWO_HEADS, 64, 2, "sdpa", "float16"),
        (TWO_HEADS, 64, 2, "naive", "float16"),
        (SWIN, 256, 1, "sdpa", "amp"),  # padded, shifted
        (SWIN, 224, 2, "sdpa", "amp"),
        (SWIN, 224, 2, "naive", "amp"),
        (SWIN, 224, 3, "sdpa", "float16"),
        (variant("swin_s", 16, depth=4), 288, 2, "naive", "float32"),
        (variant("swin_b", 8, depth=2), 96, 2, "sdpa", "float32"),  # the last stages are one window
    ],
    ids=str,
)
def test_work_and_memory_are_those_of_the_trace(
    chosen: Variant, image: int, batch: int, backend: str, dtype: str
) -> None:
    module = opened(chosen, image, batch, backend)
    seen, told = trace(module, batch, dtype=dtype), ledger(chosen, image, batch, backend, dtype)
    hold(told, seen, module)
    times = [gpu.seconds(works, card("rtx4090"), START) for works in (told.works, seen.works())]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


@pytest.mark.parametrize(("chosen", "backend"), [(VIT, "sdpa"), (VIT, "naive"), (SWIN, "sdpa")], ids=str)
def test_on_a_cpu_too(chosen: Variant, backend: str) -> None:
    module = opened(chosen, 224, 2, backend)
    seen = trace(module, 2, device="cpu", dtype="float32")
    hold(ledger(chosen, 224, 2, backend, "float32", CPU), seen, module)


def test_the_largest_models_hold_what_the_trace_holds() -> None:
    module = opened(models["vit_l_16"], 384, 1, "naive")
    hold(ledger(models["vit_l_16"], 384, 1, "naive", "amp"), trace(module, 1), module)


@pytest.mark.parametrize("name", ["vit_b_14", "deit_s_16_distilled", "swin_b_384"])
@pytest.mark.parametrize("backend", ["naive", "sdpa"])
def test_many_shapes_at_once_are_as_one_by_one(name: str, backend: str) -> None:
    step = 32 if name.startswith("swin") else models[name].model.pixels()
    images, batches = np.arange(224 // step, 640 // step, 5)[:, None] * step, np.array([1, 2, 5])[None]
    many = ledger(models[name], images, batches, backend, "amp", Kernels(tile=16))
    times = gpu.seconds(many.works, card("h100"), START)
    for row, image in enumerate(images[:, 0]):
        for column, batch in enumerate(batches[0]):
            one = ledger(models[name], int(image), int(batch), backend, "amp", Kernels(tile=16))
            assert many.peak_bytes[row, column] == one.peak_bytes
            assert (
                many.macs[row, column]
                == one.macs
                == batch * models[name].model.cost(models[name].shape(int(image)), "model").total_macs
            )
            assert times[row, column] == pytest.approx(gpu.seconds(one.works, card("h100"), START), rel=1e-12)


def test_tiles_of_fused_attention_are_those_of_the_trace() -> None:
    works = trace(opened(VIT, 224, 1, "sdpa"), 1, device="cpu", dtype="float32").works(tile=16)
    told = ledger(VIT, 224, 1, "sdpa", "float32", Kernels(16, sums=True))
    tiled = [sum(work.macs for work in some if work.kind == "attention") for some in (works, told.works)]
    assert tiled[1] == pytest.approx(tiled[0])
    assert told.macs < sum(work.macs for work in told.works)


def test_what_is_not_written_on_paper_is_refused() -> None:
    assert not known(models["resnet50"]) and known(models["swin_t"])
    with pytest.raises(Refusal, match="resnet50 is not written on paper"):
        ledger(models["resnet50"], 224, 1, "sdpa", "amp")
    with pytest.raises(Refusal, match="image 240 is no multiple of 32 pixels, which swin_t takes"):
        ledger(models["swin_t"], 240, 1, "sdpa", "amp")
