"""The program of CoAtNet: timm's."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from vitbench.arithmetic import quotient
from vitbench.layer import Attend, Layer, layers
from vitbench.models.coatnet import DEPTHS, STEM, Coatnet
from vitbench.pyramid import PIXELS
from vitbench.shape import Shape
from vitbench.weights import load

STRIDED = {"first": "1x1", "depthwise": "dw"}  # the convolution with the stride, as timm names it


@layers.add
class CoAtNet(Layer):
    """Images (B, 3, H, W) -> logits (B, classes). State: model, timm's, whose attention is torch's fused one."""

    name = "coatnet"

    def __init__(self, operator: Coatnet, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        from timm import create_model

        self.model = create_model(
            "coatnet_0_224",
            num_classes=operator.classes,
            img_size=(PIXELS * shape.height, PIXELS * shape.width),
            depths=DEPTHS,
            embed_dim=tuple(here.dim for here in operator.shapes(shape)),
            stem_width=quotient(shape.dim, STEM),
            head_hidden_size=shape.dim,
            conv_stride_mode=STRIDED[operator.down],
        )
        for name, parameter in self.model.named_parameters():
            if name.endswith("relative_position_bias_table"):
                nn.init.normal_(parameter)  # not 0.02: a program that drops the bias must be seen to be wrong

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(images)
        return logits

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Weights of CoAtNet as timm names them. Raises Refusal for those of another variant or image size."""
        load(self.model, state)
