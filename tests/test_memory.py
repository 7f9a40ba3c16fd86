"""Peak bytes of any source: predicted without running it, against what the CPU's allocator was asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import memory as study
from vitbench.ledger.tape import PRECISIONS
from vitbench.memory import CPU, Device, Peak, Setup, held
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


def given(bytes_: int, gradients: int) -> Device:
    return Device(lambda opened, training: Peak(bytes_, gradients), tuple(PRECISIONS))


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
    none = held(tied(), "training", "none", given(30_000, 30_000))
    assert (none.gradients, none.activations, none.stepping) == (30_000, 0, False)


def test_gradients_of_a_shared_matrix_are_one() -> None:
    opened = tied()
    found = CPU.peak(opened, True)
    assert 0 < found.gradients <= 40_000
    assert all(weight.is_meta and weight.grad is None for weight in opened.module.parameters())


def test_half_the_bytes() -> None:
    whole, half = (
        Setup("timm:vit_tiny_patch16_224", (64, 64), dtype=dtype, device=given(5, 0)).memory()
        for dtype in ("float32", "bfloat16")
    )
    assert (2 * half.parameters, 2 * half.inputs) == (whole.parameters, whole.inputs)
    mixed = Setup("timm:vit_tiny_patch16_224", (64, 64), dtype="amp", device=given(5, 0)).memory()
    assert (mixed.parameters, mixed.activations) == (whole.parameters, 5)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"mode": "sleeping"}, "unknown mode 'sleeping'; known: inference, training"),
        ({"optimiser": "adam"}, "unknown optimiser 'adam'; known: none, sgd, momentum, adamw"),
        ({"dtype": "int8"}, "dtype 'int8' is not told there; expected one of float32"),
        ({"dtype": "amp"}, "dtype 'amp' is not told there; expected one of float32"),
        ({"batch": 0}, "batch 0 is less than 1"),
        ({"optimiser": "sgd"}, "optimiser sgd steps in training alone, not in inference"),
    ],
)
def test_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        Setup("vit_b_16", **asked)


def test_a_model_that_does_not_run_says_why() -> None:
    with pytest.raises(Refusal, match=r"choosy at 96x96 cannot be traced \(inference\): ValueError: 64 pixels, not 96"):
        Setup("sources:choosy", (96, 96)).memory()
    frozen = Opened("frozen", nn.Linear(3, 3, device="meta").requires_grad_(False), (torch.zeros(3),), None)
    with pytest.raises(Refusal, match=r"its own inputs cannot be traced \(training\): ValueError: nothing"):
        held(frozen, "training")
