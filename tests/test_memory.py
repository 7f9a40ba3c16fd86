"""Peak bytes of any source: predicted without running it, against what the CPU's allocator was asked for."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import memory as study
from vitbench.exact.live import Peak, peak
from vitbench.measure.memory import allocations
from vitbench.memory import OPTIMISERS, Device, Setup, held
from vitbench.refusal import Refusal
from vitbench.source import Opened

WITHIN = 0.01
SOURCES = [  # with an image, and whether attention is written out
    ("timm:vit_tiny_patch16_224", 64, False),
    ("timm:vit_tiny_patch16_224", 224, True),
    ("deit_ti_16_distilled", 224, False),  # tiles of 64 queries
    ("deit_ti_16_distilled", 96, True),
    ("swin_t", 64, False),  # in training its bias takes a gradient, and torch writes attention out
    ("timm:convnext_atto", 96, False),
    ("timm:resnet18", 64, False),  # buffers, and statistics of batches
]


@pytest.mark.parametrize(("mode", "optimisers"), study.RUNS)
@pytest.mark.parametrize(("source", "side", "eager"), SOURCES)
def test_predicted_is_measured(source: str, side: int, eager: bool, mode: str, optimisers: tuple[str, ...]) -> None:
    agree(Setup(source, (side, side), 2, mode, eager=eager), optimisers)


def test_other_optimisers() -> None:
    agree(Setup("timm:vit_tiny_patch16_224", (64, 64), 2, "training"), ("sgd", "momentum"))


def agree(setup: Setup, optimisers: tuple[str, ...]) -> None:
    for found in study.compared(setup, optimisers):
        assert found["ratio"] == pytest.approx(1, abs=WITHIN)
        assert found["ratio_above"] == pytest.approx(1, abs=WITHIN)


def test_what_fused_attention_saves() -> None:
    naive, fused = (
        Setup("timm:vit_tiny_patch16_224", (224, 224), 4, "training", eager=eager).memory() for eager in (True, False)
    )
    assert fused.parameters == naive.parameters
    assert fused.peak_bytes < naive.peak_bytes


def test_all_parameters_at_once_take_as_much_as_they_hold() -> None:
    weights = [nn.Parameter(torch.ones(50, 40)), nn.Parameter(torch.ones(300))]
    optimiser = torch.optim.AdamW(weights, foreach=True)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimiser.step()
    taken = max(accumulate(allocations(lambda: optimiser.step())))
    assert taken == pytest.approx(OPTIMISERS["adamw"].together * 4 * (2000 + 300), rel=WITHIN)


class Tied(nn.Module):
    """A matrix used twice, one that takes no gradient, and a buffer; 100 inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(100, 100, bias=False)
        self.second = nn.Linear(100, 100, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(100, 100, bias=False).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.frozen(self.second(self.first(x - self.mean)))
        return result


def tied() -> Opened:
    with torch.device("meta"):
        return Opened("tied", Tied(), (torch.zeros(10, 100),), None)


def given(bytes_: int, gradients: int, together: bool = False) -> Device:
    return Device(lambda opened, training: Peak(bytes_, gradients), together)


def test_what_is_held() -> None:
    found = held(tied(), "training", "adamw", given(100_000, 30_000))
    assert (found.parameters, found.buffers, found.inputs) == (80_000, 400, 4_000)
    assert found.optimiser == 2 * 40_000 + 4  # of what takes a gradient; and a count of steps


def test_the_step_is_the_peak_where_it_takes_more_than_the_call() -> None:
    call = held(tied(), "training", "adamw", given(150_000, 30_000))
    assert (call.gradients, call.activations, call.stepping) == (30_000, 120_000, False)
    step = held(tied(), "training", "adamw", given(119_999, 30_000))
    assert (step.gradients, step.activations, step.stepping) == (40_000, 80_000, True)
    assert step.peak_bytes == 80_000 + 400 + 4_000 + 80_004 + 120_000
    together = held(tied(), "training", "adamw", given(79_999, 30_000, together=True))
    assert (together.gradients, together.activations, together.optimiser) == (40_000, 40_000, 80_000)
    none = held(tied(), "training", "none", given(30_000, 30_000))
    assert (none.gradients, none.activations, none.stepping) == (30_000, 0, False)


def test_gradients_of_a_shared_matrix_are_one() -> None:
    opened = tied()
    found = peak(opened.module, opened.inputs, training=True, device="cpu")
    assert found.gradients <= 40_000
    assert all(weight.is_meta and weight.grad is None for weight in opened.module.parameters())


def test_an_allocator_that_rounds_up() -> None:
    opened = tied()
    plain, coarse = (
        peak(opened.module, opened.inputs, training=False, device="cpu", granule=granule).bytes for granule in (1, 512)
    )
    assert (plain, coarse) == (8_000, 8_192)  # two of 10 x 100
    found = held(opened, device=given(0, 0)._replace(granule=512))
    assert (found.parameters, found.buffers, found.inputs) == (2 * 40_448, 512, 4_096)


def test_half_the_bytes() -> None:
    whole, half = (
        Setup("timm:vit_tiny_patch16_224", (64, 64), dtype=dtype).memory() for dtype in ("float32", "bfloat16")
    )
    assert (2 * half.parameters, 2 * half.inputs) == (whole.parameters, whole.inputs)
    mixed = Setup("timm:vit_tiny_patch16_224", (64, 64), dtype="amp", device=given(5, 0)).memory()
    assert (mixed.parameters, mixed.activations) == (whole.parameters, 5)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"mode": "sleeping"}, "unknown mode 'sleeping'; known: inference, training"),
        ({"optimiser": "adam"}, "unknown optimiser 'adam'; known: none, sgd, momentum, adamw"),
        ({"dtype": "int8"}, "unknown dtype 'int8'; known: float32, float16, bfloat16, amp"),
        ({"batch": 0}, "batch 0 is less than 1"),
        ({"optimiser": "sgd"}, "optimiser sgd steps in training alone, not in inference"),
    ],
)
def test_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        Setup("vit_b_16", **asked)


def test_a_model_that_does_not_run_says_why() -> None:
    with pytest.raises(Refusal, match=r"choosy at 96x96 cannot run \(inference\): ValueError: 64 pixels, not 96"):
        Setup("sources:choosy", (96, 96)).memory()
    frozen = Opened("frozen", nn.Linear(3, 3, device="meta").requires_grad_(False), (torch.zeros(3),), None)
    with pytest.raises(Refusal, match=r"its own inputs cannot run \(training\): ValueError: nothing that it gives"):
        held(frozen, "training")
