"""The convolutional comparators, which timm runs: against torchvision, against the paper, and where timm is lacking."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from vitbench.backend import refused
from vitbench.case import Case
from vitbench.check import TOLERANCE, error
from vitbench.model import models
from vitbench.models.coatnet import Coatnet
from vitbench.models.convnext import Convnext
from vitbench.models.resnet import Resnet
from vitbench.operator import Operator, parse_operator
from vitbench.program import build
from vitbench.refusal import Refusal
from vitbench.shape import Shape

EXACT = {"rtol": 1e-7, "atol": 1e-9}
NAMES = (  # of torchvision's ConvNeXt, and of timm's
    (r"^features\.0\.", "stem."),
    *((rf"^features\.{2 * n}\.", f"stages.{n}.downsample.") for n in (1, 2, 3)),
    *((rf"^features\.{2 * n + 1}\.", f"stages.{n}.blocks.") for n in (0, 1, 2, 3)),
    (r"\.layer_scale$", ".gamma"),
    (r"\.block\.0\.", ".conv_dw."),
    (r"\.block\.2\.", ".norm."),
    (r"\.block\.3\.", ".mlp.fc1."),
    (r"\.block\.5\.", ".mlp.fc2."),
    (r"^classifier\.0\.", "head.norm."),
    (r"^classifier\.2\.", "head.fc."),
)
TORCHVISIONS = {"resnet50": ("resnet50", ()), "convnext_t": ("convnext_tiny", NAMES)}
TINY = {
    "resnet": Case(Resnet(1, 5), Shape(4, 3, 2, 64, 1), "own", "float64", scope="model"),
    "convnext": Case(Convnext(1, 5), Shape(2, 2, 1, 64, 1), "own", "float64", scope="model"),
    "coatnet": Case(Coatnet("first", 5), Shape(2, 3, 2, 192, 6), "own", "float64", scope="model"),
    "coatnet, depthwise": Case(Coatnet("depthwise", 5), Shape(2, 3, 2, 192, 6), "own", "float64", scope="model"),
}
needs_timm = pytest.mark.skipif(Resnet().lacking() is not None, reason=str(Resnet().lacking()))


def renamed(key: str, names: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in names:
        key = re.sub(pattern, replacement, key)
    return key


@needs_timm
@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", TORCHVISIONS)
def test_with_the_same_weights_torchvision_gives_the_same_logits_and_gradients(name: str, mode: str) -> None:
    shape, (theirs, names) = replace(models[name].shape(32, batch=2), height=2), TORCHVISIONS[name]
    program = build(Case(models[name].model, shape, "own", "float64", scope="model", mode=mode))
    other = getattr(pytest.importorskip("torchvision").models, theirs)().double().train(mode == "training")
    own = program.module.model.state_dict()
    other.load_state_dict({key: own[renamed(key, names)].view_as(at) for key, at in other.state_dict().items()})
    for part in other.modules():
        part.p = 0.0  # of stochastic depth; nothing else has one
    result, expected = program.call(), other(*program.inputs)
    torch.testing.assert_close(result[0] if program.training else result, expected, **EXACT)
    if program.training:
        gradients = dict(zip(dict(program.module.model.named_parameters()), result[1], strict=True))
        keys, weights = zip(*other.named_parameters(), strict=True)
        for key, gradient in zip(keys, torch.autograd.grad(expected.sum(), weights), strict=True):
            torch.testing.assert_close(gradients[renamed(key, names)].view_as(gradient), gradient, **EXACT)


@needs_timm
@pytest.mark.parametrize("what", TINY)
def test_no_block_and_no_bias_of_positions_could_be_dropped_unseen(what: str) -> None:
    program = build(TINY[what])
    logits = program.call()
    hidden = (".bn3.weight", ".gamma", ".relative_position_bias_table")
    weights = [weight for name, weight in program.module.named_parameters() if name.endswith(hidden)]
    assert weights
    for weight in weights:
        before = weight.detach().clone()
        weight.zero_()
        assert (program.call() - logits).abs().max() > 1e-4 * logits.abs().max()
        weight.copy_(before)


@needs_timm
def test_rounding_its_image_moves_gradients_of_resnet_beyond_any_tolerance_and_not_its_logits() -> None:
    """ReLU and max pooling: why a dtype's gradients are not compared."""
    program = build(replace(TINY["resnet"], mode="training"))
    rounded = replace(program, inputs=tuple(image.bfloat16().double() for image in program.inputs))
    (logits, gradients), (near, others) = program.call(), rounded.call()
    off = [float((a - b).abs().max() / a.abs().max()) for a, b in zip(gradients, others, strict=True)]
    assert (near - logits).abs().max() < TOLERANCE["bfloat16"] * logits.abs().max()
    assert max(off) > 2 * TOLERANCE["bfloat16"]


@needs_timm
def test_where_gradients_are_not_compared_the_logits_are() -> None:
    case = replace(TINY["resnet"], dtype="float32", mode="training")
    program = build(case)
    assert error(case, program) <= TOLERANCE["float32"]
    program.module.model.act1 = nn.GELU()
    assert error(case, program) > TOLERANCE["float32"]


@needs_timm
@pytest.mark.parametrize("what", TINY)
def test_weights_load_as_timm_names_them_and_those_of_another_variant_are_refused(what: str) -> None:
    program, other = build(TINY[what]), build(TINY[what], seed=1)
    before = program.call()
    program.module.load(other.module.model.state_dict())
    assert not torch.allclose(before, program.call())
    torch.testing.assert_close(other.module(*program.inputs), program.call())
    smaller = replace(TINY[what], operator=replace(TINY[what].operator, classes=4))
    with pytest.raises(Refusal, match="has the size"):
        program.module.load(build(smaller).module.model.state_dict())


@pytest.mark.parametrize("package", ["timm", "torchvision"])
@pytest.mark.parametrize("what", TINY)
def test_where_a_package_is_lacking_the_case_is_refused_and_told_on_paper(
    what: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else object())
    case = TINY[what]
    sentence = f"{case.operator.name} needs {package}, which is not installed: pip install timm torchvision"
    assert refused(case) == sentence
    assert case.cost().total_macs > 0
    assert refused(Case(parse_operator("global"), Shape(1, 2, 2, 8, 1), "naive")) is None


REFUSED = [
    (Resnet(0), Shape(1, 1, 1, 2048, 1), "depth 0 is less than 1"),
    (Convnext(9, 0), Shape(1, 1, 1, 768, 1), "classes 0 is less than 1"),
    (Coatnet("first", 0), Shape(1, 1, 1, 768, 24), "classes 0 is less than 1"),
    (Resnet(), Shape(1, 1, 1, 2048, 2), "a network of convolutions has no heads; expected heads 1, not 2"),
    (Convnext(), Shape(1, 1, 1, 768, 2), "a network of convolutions has no heads; expected heads 1, not 2"),
    (Coatnet(), Shape(1, 1, 1, 768, 12), "heads have 32 features; expected heads 24, not 12"),
    (Resnet(), Shape(1, 1, 1, 48, 1), "dim 48 is not a multiple of 32"),
    (Convnext(), Shape(1, 1, 1, 12, 1), "dim 12 is not a multiple of 8"),
    (Coatnet(), Shape(1, 1, 1, 96, 3), "dim 96 is not a multiple of 192"),
    (Resnet(), Shape(1, 1, 1, 2048, 1, 1), "resnet runs on a grid, which has no place for prefix tokens"),
    (Convnext(), Shape(1, 1, 1, 768, 1, 1), "convnext runs on a grid, which has no place for prefix tokens"),
    (Coatnet(), Shape(1, 1, 1, 768, 24, 1), "coatnet runs on a grid, which has no place for prefix tokens"),
]


@pytest.mark.parametrize(("operator", "shape", "reason"), REFUSED, ids=str)
def test_what_is_no_such_network_is_refused(operator: Operator, shape: Shape, reason: str) -> None:
    assert str(operator.refused(shape, "model")).startswith(reason)
