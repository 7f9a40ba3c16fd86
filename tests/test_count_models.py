"""Every model counted exactly: as an eager, unfused program is counted by torch's FlopCounterMode on meta tensors.

Two resolutions where the model is made for any, in inference and in training. The reference has attention written out
as products and softmax; ours goes through fused attention, where the model has it. In training it is FlopCounterMode
with the suite's formula for the backward of convolutions in groups, which torch's has wrong.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, _FlopCounterMode

from vitbench.count import count
from vitbench.counter import counters
from vitbench.exact.watch import tally
from vitbench.model import models
from vitbench.program import Program
from vitbench.source import open_source

FAMILIES = {  # one small model or several of each family of attention, with a second resolution
    "ViT": {"vit_tiny_patch16_224": 384, "vit_small_patch14_reg4_dinov2": 224, "vit_base_patch16_siglip_224": 256},
    "ViT with relative positions": {"vit_relpos_small_patch16_224": 256, "vit_srelpos_small_patch16_224": 256},
    "DeiT": {"deit_tiny_distilled_patch16_224": 384, "deit3_small_patch16_224": 384},
    "BEiT": {"beit_base_patch16_224": 384, "beitv2_base_patch16_224": 384},
    "EVA": {"eva02_tiny_patch14_224": 336},
    "NaFlexViT": {"naflexvit_base_patch16_gap": 512},
    "FlexiViT": {"flexivit_small": 320},
    "CaiT": {"cait_xxs24_224": 384},
    "XCiT": {"xcit_nano_12_p16_224": 384},
    "PiT": {"pit_ti_224": 448},
    "ConViT": {"convit_tiny": 384},
    "CrossViT": {"crossvit_tiny_240": 480},
    "Swin v1": {"swin_tiny_patch4_window7_224": 256, "swin_s3_tiny_224": 448},
    "Swin v2": {"swinv2_tiny_window8_256": 320, "swinv2_cr_tiny_224": 448},
    "SAM": {"samvit_base_patch16": 512},
    "Hiera": {"hiera_tiny_224": 448},
    "MaxViT": {"maxvit_tiny_tf_224": 448, "maxxvit_rmlp_nano_rw_256": 512},
    "CoAtNet": {"coatnet_0_rw_224": 448},
    "PVT": {"pvt_v2_b0": 320},
    "Twins": {"twins_svt_small": 320, "twins_pcpvt_small": 320},
    "MViT": {"mvitv2_tiny": 320, "mvitv2_small_cls": 320},
    "DaViT": {"davit_tiny": 320},
    "GCViT": {"gcvit_xxtiny": 448},
    "LeViT": {"levit_128s": 448, "levit_conv_128s": 448},
    "TinyViT": {"tiny_vit_5m_224": 448},
    "NesT": {"nest_tiny": 448},
    "Visformer": {"visformer_tiny": 448},
    "VOLO": {"volo_d1_224": 448},
    "EdgeNeXt": {"edgenext_xx_small": 320},
    "MobileViT": {"mobilevit_xxs": 320, "mobilevitv2_050": 320},
    "NextViT": {"nextvit_small": 320},
    "EfficientViT (MIT)": {"efficientvit_b0": 320},
    "EfficientViT (MSRA)": {"efficientvit_m0": 448},
    "EfficientFormer": {"efficientformer_l1": None, "efficientformerv2_s0": 448},
    "CAFormer": {"caformer_s18": 320},
    "FastViT": {"fastvit_sa12": 320},
    "FocalNet, without attention": {"focalnet_tiny_srf": 320},
    "Bottleneck transformer": {"botnet26t_256": None},
    "HaloNet": {"halonet26t": None},
    "LambdaNetworks": {"lambda_resnet26t": None},
    "MobileNetV4": {"mobilenetv4_hybrid_medium": 320},
}
TIMM = [(name, image) for family in FAMILIES.values() for name, second in family.items() for image in (None, second)]
CASES = list(dict.fromkeys(TIMM))
NO_SOFTMAX = ("efficientvit_b0", "focalnet_tiny_srf", "mobilevitv2_050", "lambda_resnet26t")
needs_timm = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
BATCH = 2  # BatchNorm takes no single value in training


def test_the_families_are_many() -> None:
    assert len(FAMILIES) >= 15
    assert len({name for family in FAMILIES.values() for name in family}) >= 40


def eagerly(source: str, image: int | None, training: bool) -> int:
    """MACs by torch's counter, attention written out."""
    size = None if image is None else (image, image)
    opened = open_source(source, size, BATCH, eager=True)
    if not training:
        counter = FlopCounterMode(display=False)
        with torch.no_grad(), _FlopCounterMode(counter):  # without its tracker of modules, which no_grad confuses
            opened.module(*opened.inputs)
        return counter.get_total_flops() // 2
    opened.module.train()
    program = Program(_Summed(opened.module), opened.inputs, True)
    return counters["dispatch"].count(program).macs


class _Summed(torch.nn.Module):
    """Gives what the model gives and nothing of the weights, in one tensor, so that all of them take a gradient."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.inner(x)
        unused = sum((weight * 0).sum() for weight in self.inner.parameters())
        return given.sum() + unused


@needs_timm
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize(("name", "image"), CASES)
def test_a_model_of_timm_is_counted_as_its_eager_program(name: str, image: int | None, training: bool) -> None:
    opened = open_source(f"timm:{name}", None if image is None else (image, image), BATCH)
    found = tally(opened.module.train(training), opened.inputs, training=training)
    assert found.uncounted == {}
    assert found.score_elements > 0 or name in NO_SOFTMAX
    assert found.macs == eagerly(f"timm:{name}", image, training)


@needs_timm
def test_attention_written_out_once_is_fused_the_next_time() -> None:
    from timm.layers import use_fused_attn

    fused = []
    for eager in (True, False):
        model = open_source("timm:vit_tiny_patch16_224", eager=eager).module
        fused.append(model.get_submodule("blocks.0.attn").fused_attn)
        assert use_fused_attn()
    assert fused == [False, True]


RUNNABLE = [variant.name for variant in models if all(map(find_spec, variant.model.packages))]


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_model_of_the_suite_is_counted_as_its_closed_form(name: str) -> None:
    variant = models[name]
    for image in (variant.image, 2 * variant.image):
        forward, both = (count(name, (image, image), BATCH, mode) for mode in ("inference", "training"))
        assert forward.method == both.method == "closed form"
        opened = open_source(name, (image, image), BATCH)
        found = tally(opened.module.train(), opened.inputs, training=True)
        assert (found.by("place")["forward"], found.macs) == (forward.macs, both.macs)
    assert tally(opened.module.eval(), opened.inputs).macs == forward.macs
