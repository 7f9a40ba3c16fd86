"""What fvcore adds and passes over, as `published/fvcore.py` sees it, is what fvcore itself counts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from vitbench.published.fvcore import Fvcore


class Everything(nn.Module):
    """All that fvcore has a formula for beside products, weights or none, and a convolution padded by a word."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.Sequential(
            nn.BatchNorm2d(8), nn.BatchNorm2d(8, affine=False), nn.GroupNorm(2, 8), nn.GroupNorm(2, 8, affine=False),
            nn.InstanceNorm2d(8), nn.InstanceNorm2d(8, affine=True), nn.LayerNorm([6, 6]),
            nn.LayerNorm([6, 6], elementwise_affine=False),
        )  # fmt: skip
        self.convolution = nn.Conv2d(8, 8, 3, padding=1)
        self.worded = nn.Conv2d(8, 12, 3, padding="same", groups=4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norms(x)
        weight = self.convolution.weight.reshape(1, 8, -1)
        ones = torch.ones(8)
        for scale in (None, ones):
            weight = functional.batch_norm(weight, None, None, weight=scale, training=True)
        x = functional.conv2d(x, weight.reshape(8, 8, 3, 3), padding=1)
        x = functional.interpolate(x, scale_factor=2, mode="bilinear")
        x = functional.interpolate(x, scale_factor=2)
        x = functional.grid_sample(x, torch.zeros(1, 5, 5, 2), align_corners=False)
        return functional.adaptive_avg_pool2d(self.worded(x), 2)


def test_it_is_what_fvcore_counts() -> None:
    fvcore = pytest.importorskip("fvcore.nn")
    module, x = Everything().eval(), torch.zeros(1, 8, 6, 6)
    with torch.no_grad(), Fvcore() as seen:
        module(x)
    analysis = fvcore.FlopCountAnalysis(module, (x,)).unsupported_ops_warnings(False)
    operators = dict(analysis.by_operator())
    assert operators.pop("conv") == 8 * 8 * 9 * 36
    assert seen.norms == sum(operators.values())
    assert len(operators) >= 7
    assert analysis.unsupported_ops()["aten::_convolution_mode"] == 1
    assert seen.worded == 25 * 12 * 2 * 9
