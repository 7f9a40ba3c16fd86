"""The program of ConvNeXt: timm's."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from vitbench.layer import Attend, Layer, layers
from vitbench.models.convnext import Convnext
from vitbench.shape import Shape
from vitbench.weights import load


@layers.add
class ConvNeXt(Layer):
    """Images (B, 3, H, W) -> logits (B, classes). State: model, timm's."""

    name = "convnext"

    def __init__(self, operator: Convnext, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        from timm import create_model

        dims = tuple(here.dim for here in operator.shapes(shape))
        self.model = create_model("convnext_tiny", num_classes=operator.classes, depths=operator.depths(), dims=dims)
        for name, parameter in self.model.named_parameters():
            if name.endswith(".gamma"):
                nn.init.normal_(parameter)  # not 1e-6: a block that is dropped must be seen to be wrong

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(images)
        return logits

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Weights of ConvNeXt as timm names them. Raises Refusal for those of another variant."""
        load(self.model, state)
