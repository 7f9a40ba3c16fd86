"""The program of ResNet: timm's."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from vitbench.arithmetic import quotient
from vitbench.layer import Attend, Layer, layers
from vitbench.models.resnet import EXPANSION, Resnet
from vitbench.shape import Shape
from vitbench.weights import load


@layers.add
class ResNet(Layer):
    """Images (B, 3, H, W) -> logits (B, classes). State: model, timm's."""

    name = "resnet"

    def __init__(self, operator: Resnet, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        from timm import create_model

        self.model = create_model(
            "resnet50",
            num_classes=operator.classes,
            layers=operator.depths(),
            channels=tuple(quotient(here.dim, EXPANSION) for here in operator.shapes(shape)),
        )
        for name, parameter in self.model.named_parameters():
            if name.endswith(".bn3.weight"):  # of a block's last norm
                nn.init.constant_(parameter, 0.2)  # at timm's 0 no block would be seen, at 1 rounding errors explode

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(images)
        return logits

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Weights of ResNet as timm and torchvision name them. Raises Refusal for those of another variant."""
        load(self.model, state)
