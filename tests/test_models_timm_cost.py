"""What the convolutional comparators cost: against the papers' tables, timm's modules and what others published."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vitbench.case import Case
from vitbench.cost import Cost
from vitbench.counter import Count, counters
from vitbench.model import Model, models
from vitbench.models.coatnet import Coatnet
from vitbench.models.convnext import Convnext
from vitbench.models.resnet import Resnet
from vitbench.program import build
from vitbench.shape import Shape

TORCHVISION = {  # parameters, 10^9 MACs at 224 pixels; torchvision 0.29.1's weights metadata
    "resnet50": (25_557_032, 4.089),
    "resnet101": (44_549_160, 7.801),
    "convnext_t": (28_589_128, 4.456),
    "convnext_s": (50_223_688, 8.684),
}
TIMM = {  # 10^6 parameters, 10^9 MACs at 224 pixels; timm, results/benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv
    "resnet50": (25.56, 4.11),
    "convnext_t": (28.59, 4.47),
    "coatnet_0_depthwise": (25.04, 4.58),  # coatnet_0_224 there
}
ADDED = {"BatchNorm2d": 2, "BatchNormAct2d": 2, "LayerNorm": 5, "LayerNorm2d": 5, "SelectAdaptivePool2d": 1}
PAPER = {"coatnet_0": (25, 4.2), "coatnet_0_depthwise": (25, 4.6)}  # Dai 2021, table 9
IMAGE = {"resnet50": 112**2 * 7**2 * 3 * 64, "convnext_t": 56**2 * 4**2 * 3 * 96, "coatnet_0": 112**2 * 3**2 * 3 * 64}
needs_timm = pytest.mark.skipif(Resnet().lacking() is not None, reason=str(Resnet().lacking()))


def cost(name: str, mode: str = "inference") -> Cost:
    return models[name].model.cost(models[name].shape(), "model", mode)


@pytest.mark.parametrize("name", TORCHVISION)
def test_parameters_and_macs_are_those_that_torchvision_publishes(name: str) -> None:
    assert (cost(name).parameters, round(cost(name).total_macs / 1e9, 3)) == TORCHVISION[name]


@needs_timm
@pytest.mark.parametrize("name", TIMM)
def test_parameters_and_macs_are_those_that_timm_publishes(name: str) -> None:
    """With what its counter adds for each element of a norm and of the last mean."""
    module, added = models[name], []
    program = build(Case(module.model, module.shape(), "own", scope="model"), device="meta")

    def add(part: nn.Module, given: tuple[torch.Tensor], _: torch.Tensor) -> None:
        added.append(ADDED[type(part).__name__] * given[0].numel())

    for part in program.module.modules():
        if type(part).__name__ in ADDED:
            part.register_forward_hook(add)
    program.call()
    assert round(cost(name).parameters / 1e6, 2) == TIMM[name][0]
    assert round((cost(name).total_macs + sum(added)) / 1e9, 2) == TIMM[name][1]


@pytest.mark.parametrize("name", PAPER)
def test_coatnet_has_the_papers_parameters_and_a_hundredth_fewer_macs(name: str) -> None:
    """The paper does not say what it counts beside products; 0.05 is its rounding."""
    parameters, macs = PAPER[name]
    assert round(cost(name).parameters / 1e6) == parameters
    assert abs(macs - cost(name).total_macs / 1e9 - 0.05) < 0.05


def test_a_stride_in_the_depthwise_convolution_makes_coatnet_expand_four_times_as_many_positions() -> None:
    further = cost("coatnet_0_depthwise").total_macs - cost("coatnet_0").total_macs
    assert further == (112**2 - 56**2) * 64 * 4 * 96 + (56**2 - 28**2) * 96 * 4 * 192
    assert round(further / 1e9, 1) == round(4.6 - 4.2, 1)


@pytest.mark.parametrize("name", IMAGE)
def test_training_takes_no_gradient_of_the_image(name: str) -> None:
    assert cost(name, "training").total_macs == 3 * cost(name).total_macs - IMAGE[name]


def test_the_macs_of_resnet_are_those_of_its_table() -> None:
    """Table 1, layer by layer: kernel, inputs, outputs, side of the result at 224 pixels."""
    layers, inputs = [(7, 3, 64, 112)], 64
    for side, width, depth in ((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3)):
        for block in range(depth):
            before = side if block or side == 56 else 2 * side  # the stride stands in the 3x3
            layers += [(1, inputs, width, before), (3, width, width, side), (1, width, 4 * width, side)]
            layers += [] if block else [(1, inputs, 4 * width, side)]
            inputs = 4 * width
    conv = sum(kernel**2 * given * made * side**2 for kernel, given, made, side in layers)
    weights = sum(kernel**2 * given * made + 2 * made for kernel, given, made, _ in layers)
    assert cost("resnet50").macs == {"conv": conv, "head": 2048 * 1000}
    assert cost("resnet50").parameters == weights + 2048 * 1000 + 1000


def test_the_macs_of_convnext_are_a_formula() -> None:
    h, w, c = sympy.symbols("h w c", integer=True, positive=True)  # of the last stage, c: width of the first
    expected = 3 * 4**2 * 64 * h * w * c + 8 * c * 1000
    for depth, pixels, dim in ((3, 64, c), (3, 16, 2 * c), (9, 4, 4 * c), (3, 1, 8 * c)):
        expected += depth * pixels * h * w * (7**2 * dim + 8 * dim**2)
        expected += 0 if pixels == 64 else pixels * h * w * 2**2 * dim / 2 * dim
    assert sympy.expand(Convnext().cost(Shape(1, h, w, 8 * c, 1), "model").total_macs - expected) == 0


def test_the_attention_of_coatnet_alone_grows_with_the_square_of_the_grid() -> None:
    h, w, d = sympy.symbols("h w d", integer=True, positive=True)
    on_paper = Coatnet().cost(Shape(1, h, w, d, d / 32), "model")
    pairs = 5 * (4 * h * w) ** 2 * d / 2 + 2 * (h * w) ** 2 * d  # stages of 2h x 2w and h x w positions
    assert sympy.expand(on_paper.macs["scores"] - pairs) == 0
    assert sympy.expand(on_paper.macs["mix"] - pairs) == 0
    assert sympy.expand(32 * on_paper.score_elements - pairs) == 0  # heads of 32 features
    assert sympy.degree(sympy.expand(on_paper.total_macs - 2 * pairs), h) == 1


PARTS = {  # timm's modules by our stages
    Resnet(1): {"stem": ("conv1", "bn1"), "head": ("fc",), **{f"stage{n}": (f"layer{n}",) for n in (1, 2, 3, 4)}},
    Convnext(1): {"patches": ("stem",), "head": ("head",), **{f"stage{n}": (f"stages.{n - 1}",) for n in (1, 2, 3, 4)}},
    Coatnet(): {"stem": ("stem",), "head": ("head",), **{f"stage{n}": (f"stages.{n - 1}",) for n in (1, 2, 3, 4)}},
}
PARTS[Coatnet("depthwise")] = PARTS[Coatnet()]


@needs_timm
@pytest.mark.parametrize("model", PARTS, ids=str)
def test_macs_and_parameters_of_each_stage_are_those_of_timms_module(model: Model) -> None:
    shape = Shape(2, 3, 2, 192, 6 if isinstance(model, Coatnet) else 1)
    program, found = build(Case(model, shape, "own", scope="model"), device="meta"), model.stages(shape)
    timms = program.module.model
    with FlopCounterMode(display=False) as counter:
        timms(*program.inputs)
    flops = {name: sum(each.values()) for name, each in counter.get_flop_counts().items()}
    assert {*found} == {*PARTS[model]}
    for name, parts in PARTS[model].items():
        weights = [weight.numel() for part in parts for weight in timms.get_submodule(part).parameters()]
        assert found[name].cost().parameters == sum(weights), name
        assert 2 * found[name].cost().total_macs == flops[f"{type(timms).__name__}.{parts[0]}"], name


@needs_timm
def test_the_fused_attention_of_coatnet_is_its_scores_and_mix() -> None:
    case = Case(Coatnet(), Shape(1, 3, 2, 192, 6), "own", scope="model")
    count, macs = counters["dispatch"].count(build(case)), case.cost().macs
    assert [n for name, n in count.operators.items() if "dot_product" in name] == [macs["scores"] + macs["mix"]]


def test_what_counters_make_of_fused_attention_is_named_though_no_backend_runs_it() -> None:
    case = Case(Coatnet(), Shape(1, 3, 2, 192, 6), "own", scope="model", mode="training")
    scores, mix = (Coatnet().cost(case.shape, "model").macs[term] for term in ("scores", "mix"))
    fused, traced = Count({"aten._efficient_attention_backward": 1}), Count({}, ("aten::scaled_dot_product_attention",))
    assert [*counters["dispatch"].differences(case, fused).values()] == [scores]
    assert -scores - mix in counters["fvcore"].differences(case, traced).values()
