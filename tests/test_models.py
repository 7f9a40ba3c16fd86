"""Whole models against timm's and torchvision's, with the same random weights, and against their published figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy
import torch
from torch import nn

from vitbench.case import Case
from vitbench.layers.vit import resized
from vitbench.model import models
from vitbench.models.swin import Swin
from vitbench.program import Program, build
from vitbench.refusal import Refusal
from vitbench.shape import Shape

TOLERANCE = {"rtol": 0, "atol": 1e-5}
PUBLISHED = {  # model, image: parameters, 10^9 MACs; torchvision 0.29.1's weights metadata
    ("vit_b_16", 224): (86_567_656, 17.564),
    ("vit_b_16", 384): (86_859_496, 55.484),
    ("vit_b_32", 224): (88_224_232, 4.409),
    ("vit_l_16", 224): (304_326_632, 61.555),
    ("vit_l_16", 512): (305_174_504, 361.986),
    ("vit_l_32", 224): (306_535_400, 15.378),
    ("vit_h_14", 224): (632_045_800, 167.295),
    ("vit_h_14", 518): (633_470_440, 1016.717),
    ("swin_t", 224): (28_288_354, 4.491),
    ("swin_s", 224): (49_606_258, 8.741),
    ("swin_b", 224): (87_768_224, 15.431),
}
ROUNDED = {  # 10^6 parameters, 10^9 MACs; README of microsoft/Swin-Transformer
    "swin_t": (28, 4.5),
    "swin_s": (50, 8.7),
    "swin_b": (88, 15.4),
    "swin_b_384": (88, 47.1),
    "swin_l": (197, 34.5),
    "swin_l_384": (197, 103.9),
}


@pytest.mark.parametrize(("name", "image"), PUBLISHED, ids=str)
def test_parameters_and_macs_are_those_that_torchvision_publishes(name: str, image: int) -> None:
    variant = models[name]
    cost = variant.model.cost(variant.shape(image), "model")
    parameters, macs = PUBLISHED[name, image]
    assert cost.parameters == parameters
    assert round(cost.total_macs / 1e9, 3) == macs


@pytest.mark.parametrize("name", ROUNDED)
def test_swins_have_the_published_figures(name: str) -> None:
    variant = models[name]
    cost = variant.model.cost(variant.shape(), "model")
    assert (round(cost.parameters / 1e6), round(cost.total_macs / 1e9, 1)) == ROUNDED[name]


def test_macs_of_vit_b16_and_swin_t_are_exact() -> None:
    vit, swin = models["vit_b_16"], models["swin_t"]
    assert vit.model.cost(vit.shape(), "model").total_macs == 17_563_828_224
    assert swin.model.cost(swin.shape(), "model").total_macs == 4_490_566_656


def test_training_vit_b16_takes_no_gradient_of_the_image() -> None:
    vit = models["vit_b_16"]
    both, forward = (vit.model.cost(vit.shape(), "model", mode).total_macs for mode in ("training", "inference"))
    assert both - forward == 2 * forward - 196 * 768 * 3 * 16**2  # the backward pass


def test_parameters_of_vit_b16_are_its_parts() -> None:
    vit = models["vit_b_16"]
    stages = {name: stage.cost().parameters for name, stage in vit.model.stages(vit.shape()).items()}
    assert stages == {
        "patches": 590_592 + 151_296 + 768,
        "blocks": 85_054_464,
        "head": 86_567_656 - 590_592 - 151_296 - 768 - 85_054_464,
    }


def test_the_macs_of_vit_are_its_formula() -> None:
    n, d, p = sympy.symbols("n d p", integer=True, positive=True)  # n grid tokens and CLS
    blocks = 12 * (4 * (n + 1) * d**2 + 2 * (n + 1) ** 2 * d + 8 * (n + 1) * d**2)
    expected = 3 * p**2 * n * d + blocks + 1000 * d
    vit = replace(models["vit_b_16"].model, patch=p)
    assert sympy.expand(vit.cost(Shape(1, 1, n, d, 12, 1), "model").total_macs - expected) == 0


def test_padding_makes_swin_t_at_1024_cost_more_than_the_papers_formula() -> None:
    swin = models["swin_t"]
    assert swin.model.cost(swin.shape(1024), "model").total_macs == 98_410_888_320
    unpadded = 0
    for stage, depth in zip(swin.model.shapes(swin.shape(1024)), (2, 2, 6, 2), strict=True):
        n, c = stage.height * stage.width, stage.dim
        unpadded += depth * (12 * n * c**2 + 2 * 49 * n * c)  # Liu 2021, equation 2, and the MLP
        unpadded += n * 2 * c * c if c > 96 else n * 48 * c  # merging, or the patches' embedding
    assert unpadded + 768 * 1000 == 93_828_397_056


@pytest.mark.parametrize("variant", [it for it in models if not it.model.lacking()], ids=lambda variant: variant.name)
def test_parameters_of_every_variant_are_those_of_its_module(variant: object) -> None:
    shape = variant.shape(224 if variant.image % variant.model.pixels() else None)
    case = Case(variant.model, shape, "sdpa" if variant.model.attentions(shape) else "own", scope="model")
    module = build(case, device="meta").module
    assert sum(parameter.numel() for parameter in module.parameters()) == case.cost().parameters


def timms(name: str, **given: int) -> nn.Module:
    return pytest.importorskip("timm").create_model(name, **given)


def torchvisions(name: str, **given: int) -> nn.Module:
    return getattr(pytest.importorskip("torchvision").models, name)(**given)


def scrambled(model: nn.Module) -> nn.Module:
    """Every weight off its initial value: a head of zeros would agree with anything."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.02)
    return model.eval()


def ours(name: str, image: int, backend: str = "sdpa") -> Program:
    variant = models[name]
    return build(Case(variant.model, variant.shape(image), backend, scope="model"))


SAME = {
    "vit_b_16, timm": ("vit_b_16", 224, lambda: timms("vit_base_patch16_224")),
    "vit_b_16 at 256, timm": ("vit_b_16", 256, lambda: timms("vit_base_patch16_224", img_size=256)),
    "vit_b_16, torchvision": ("vit_b_16", 224, lambda: torchvisions("vit_b_16")),
    "vit_b_16 at 256, torchvision": ("vit_b_16", 256, lambda: torchvisions("vit_b_16", image_size=256)),
    "deit, timm": ("deit_b_16_distilled", 224, lambda: timms("deit_base_distilled_patch16_224")),
    "deit at 160, timm": ("deit_b_16_distilled", 160, lambda: timms("deit_base_distilled_patch16_224", img_size=160)),
    "swin_t, timm": ("swin_t", 224, lambda: timms("swin_tiny_patch4_window7_224")),
    "swin_t at 448, timm": ("swin_t", 448, lambda: timms("swin_tiny_patch4_window7_224", img_size=448)),
    "swin_t, torchvision": ("swin_t", 224, lambda: torchvisions("swin_t")),
    "swin_t at 256, torchvision": ("swin_t", 256, lambda: torchvisions("swin_t")),  # padded in every stage
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SAME)
def test_with_the_same_weights_the_logits_are_the_same(what: str) -> None:
    name, image, make = SAME[what]
    theirs, program = scrambled(make()), ours(name, image)
    program.module.load(theirs.state_dict())
    with torch.inference_mode():
        expected = theirs(*program.inputs)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(program.call(), expected, **TOLERANCE)


@pytest.mark.slow
def test_weights_of_one_resolution_load_at_another_as_in_timm() -> None:
    """timm resizes positions itself where dynamic_img_size is set."""
    theirs = scrambled(timms("vit_base_patch16_224", dynamic_img_size=True))
    program = ours("vit_b_16", 288)
    program.module.load(theirs.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(program.call(), theirs(*program.inputs), **TOLERANCE)


def test_resizing_positions_keeps_the_rows_of_special_tokens_and_their_mean() -> None:
    table = torch.randn(1, 2 + 36, 8)
    larger = resized(table, 2, Shape(1, 9, 12, 8, 1, 2))
    assert larger.shape == (1, 2 + 108, 8)
    assert torch.equal(larger[:, :2], table[:, :2])
    assert torch.equal(resized(table, 2, Shape(1, 6, 6, 8, 1, 2)), table)
    ramp = torch.arange(6.0).repeat_interleave(6)[None, :, None].expand(1, 36, 8)  # grows from row to row
    grown = resized(ramp, 0, Shape(1, 12, 6, 8, 1)).view(12, 6, 8)
    assert (grown[1:] > grown[:-1] - 1e-4).all() and torch.allclose(grown, grown[:, :1])


@pytest.mark.parametrize(("height", "width"), [(2, 8), (3, 5), (4, 4)])
def test_a_table_of_as_many_rows_as_tokens_is_taken_as_it_is(height: int, width: int) -> None:
    table = torch.randn(1, 1 + height * width, 8)
    assert resized(table, 1, Shape(1, height, width, 8, 1, 1)) is table


def test_positions_in_half_precision_are_resized_in_single_and_given_back_in_half() -> None:
    table = torch.randn(1, 1 + 36, 8)
    half = resized(table.half(), 1, Shape(1, 9, 9, 8, 1, 1))
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), resized(table, 1, Shape(1, 9, 9, 8, 1, 1)), rtol=0, atol=5e-3)


@pytest.mark.parametrize("size", [(1, 16, 8), (1, 1, 8), (1, 0, 8), (17, 8), (2, 17, 8), (1, 17, 8, 1)])
def test_what_is_no_table_of_a_square_grid_is_refused(size: tuple[int, ...]) -> None:
    with pytest.raises(Refusal, match="a table of positions of"):
        resized(torch.randn(size), 1, Shape(1, 3, 3, 8, 1, 1))


@pytest.mark.parametrize("pool", ["cls", "distilled", "mean"])
@pytest.mark.parametrize("positions", ["learned", "sine", "none"])
def test_without_positions_alone_a_shuffled_image_gives_the_same_logits(pool: str, positions: str) -> None:
    model = replace(models["vit_ti_16"].model, patch=4, depth=2, classes=7, pool=pool, positions=positions)
    program = build(Case(model, Shape(2, 3, 3, 64, 4, 3), "naive", "float64", scope="model"))
    images, weights = program.inputs[0], program.module
    patches = images.unflatten(2, (3, 4)).unflatten(4, (3, 4)).transpose(3, 4).flatten(2, 3)
    mixed = patches[:, :, torch.randperm(9, generator=torch.Generator().manual_seed(1))]
    shuffled = mixed.unflatten(2, (3, 3)).transpose(3, 4).flatten(4, 5).flatten(2, 3)
    with torch.no_grad():
        same = torch.allclose(weights(images), weights(shuffled), rtol=0, atol=1e-10)
    assert same == (positions == "none")


LOADS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "a name that lacks": (lambda state: state.pop("norm.weight"), "the weights lack norm.weight"),
    "a name too much": (lambda state: state.update(more=torch.zeros(1)), "the weights hold more"),
    "no tensor": (lambda state: state.update({"norm.weight": [1.0]}), "norm.weight is of the type list"),
    "another size": (lambda state: state.update({"norm.weight": torch.zeros(3)}), r"norm.weight has the size \(3,\)"),
}


@pytest.mark.parametrize("what", LOADS)
def test_weights_of_another_model_are_refused_and_nothing_is_loaded(what: str) -> None:
    program = build(Case(Swin(7, 1), Shape(1, 8, 8, 32, 2), "naive", scope="model"))
    spoil, message = LOADS[what]
    before = {name: value.clone() for name, value in program.module.state_dict().items()}
    state = {name: torch.zeros_like(value) for name, value in before.items()}
    spoil(state)
    with pytest.raises(Refusal, match=message):
        program.module.load(state)
    assert all(torch.equal(value, before[name]) for name, value in program.module.state_dict().items())
