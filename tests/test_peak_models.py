"""Peak bytes of whole models: the closed form against the lifetimes of the tensors of their programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vitbench.case import Case
from vitbench.count import count
from vitbench.exact.watch import tally
from vitbench.model import Model, models
from vitbench.models.swin import Swin
from vitbench.models.vit import SPECIAL, Vit
from vitbench.operator import MODES
from vitbench.program import build
from vitbench.shape import Shape

VITS = [  # with the shape of their tokens
    (Vit(16, depth=2, classes=10), Shape(1, 5, 6, 64, 4, 1)),
    (Vit(16, depth=1, classes=10), Shape(3, 5, 6, 64, 1, 1)),  # one head: nothing is joined
    (Vit(2, depth=3, classes=10, hidden=20), Shape(3, 4, 4, 48, 3, 1)),  # the last norm outweighs the MLPs
    (Vit(2, depth=1, hidden=1, classes=1), Shape(2, 3, 2, 8, 8, 1)),
    (Vit(2, depth=1, classes=1000, pool="distilled"), Shape(3, 1, 1, 16, 2, 2)),  # logits outweigh tokens
    (Vit(2, depth=1, classes=10, hidden=8, pool="distilled"), Shape(3, 4, 4, 16, 2, 2)),
    (Vit(2, depth=1, classes=60, hidden=8, pool="distilled"), Shape(3, 1, 1, 16, 2, 2)),
    (Vit(2, depth=1, classes=1000, pool="mean"), Shape(2, 2, 1, 16, 2)),
    (Vit(2, depth=2, classes=10, positions="none", pool="mean"), Shape(1, 1, 1, 16, 2)),  # one token
]
SWINS = [
    (Swin(4, depth=3, classes=10), Shape(1, 16, 16, 32, 2)),  # whole windows, the mask of one image as it is
    (Swin(4, depth=2, classes=10), Shape(3, 10, 13, 32, 2)),  # padded, the mask expanded; odd sides merge
    (Swin(4, depth=1, classes=10), Shape(3, 4, 4, 32, 1)),  # one window: views; a lone block; one head
    (Swin(7, depth=2, classes=10), Shape(3, 8, 8, 16, 2)),  # padded to three times the tokens
    (Swin(7, depth=2, classes=10), Shape(1, 3, 30, 16, 2)),  # shrunk to a side, shifted along the other
    (Swin(5, depth=1, classes=1000), Shape(3, 1, 1, 4, 1)),  # one token; logits outweigh all
    (Swin(5, depth=2, classes=10), Shape(3, 48, 48, 8, 1)),  # the last stage's gradients of q, k, v outweigh its MLP's
    (Swin(7, depth=1, classes=10), Shape(2, 1, 32, 16, 2)),  # the lone block of the third stage, padded, is the peak
    (Swin(7, depth=2, classes=1), Shape(2, 1, 1, 8, 2)),  # the tokens of each stage outweigh those before
    (Swin(12, depth=1, classes=10), Shape(1, 16, 29, 8, 2)),  # gradients of mask and bias outweigh those of q, k, v
    (Swin(20, depth=1, classes=10), Shape(1, 10, 18, 12, 3)),  # the bias as it is gathered outweighs q, k, v
    (Swin(20, depth=1, classes=10), Shape(1, 10, 18, 12, 1)),  # nor is it gathered for one head
]


def counted(model: Model, shape: Shape, mode: str) -> int:
    """By the program, fused attention as in sdpa."""
    program = build(Case(model, shape, "sdpa", scope="model"), device="meta")
    training = mode == "training"
    module = program.module.requires_grad_().train(training)
    return tally(module, program.inputs, training=training).peak_bytes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("model", "shape"), VITS + SWINS, ids=str)
def test_peak_bytes_are_those_of_the_program(model: Model, shape: Shape, mode: str) -> None:
    assert model.peak_bytes(shape, mode) == counted(model, shape, mode)


@pytest.mark.parametrize("pool", SPECIAL)
@pytest.mark.parametrize("positions", Vit.choices["positions"])
@pytest.mark.parametrize("registers", [0, 3])
def test_options_of_vit(pool: str, positions: str, registers: int) -> None:
    model = Vit(2, depth=1, classes=20, pool=pool, positions=positions)
    shape = Shape(3, 2, 3, 16, 2, SPECIAL[pool] + registers)
    for mode in MODES:
        assert model.peak_bytes(shape, mode) == counted(model, shape, mode)


@pytest.mark.parametrize(
    ("name", "image", "batch"),
    [
        ("vit_b_16", (224, 224), 1),
        ("deit_ti_16_distilled", (224, 320), 3),
        ("swin_t", (224, 224), 1),
        ("swin_t", (96, 160), 3),
    ],
)
def test_variants(name: str, image: tuple[int, int], batch: int) -> None:
    found = count(name, image, batch)
    shape = models[name].shape(image, batch)
    assert found.peak_bytes == {mode: counted(models[name].model, shape, mode) for mode in MODES}
    assert found.notes == ()


def test_the_json_holds_numbers() -> None:
    assert count("vit_b_16").to_dict()["peak_activation_bytes"] == {"inference": 6_657_024, "training": 119_380_544}


def test_every_variant_has_a_peak_that_grows_with_the_batch() -> None:
    for variant in models:
        one = variant.shape()
        for mode in MODES:
            peaks = [variant.model.peak_bytes(replace(one, batch=batch), mode) for batch in (1, 2)]
            if isinstance(variant.model, Vit | Swin):
                assert peaks[0] is not None and peaks[1] is not None and 0 < peaks[0] < peaks[1] <= 3 * peaks[0]
            else:
                assert peaks == [None, None]
