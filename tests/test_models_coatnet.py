"""CoAtNet as timm runs it against the paper, written down here in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from vitbench.case import Case
from vitbench.models.coatnet import Coatnet
from vitbench.program import build
from vitbench.shape import Shape

pytestmark = pytest.mark.skipif(Coatnet().lacking() is not None, reason=str(Coatnet().lacking()))


class Paper:
    """CoAtNet-0 as Dai 2021 writes it, with timm's names of the weights."""

    def __init__(self, state: dict[str, Tensor], down: str) -> None:
        self.state, self.down = state, down

    def __call__(self, images: Tensor) -> Tensor:
        x = functional.gelu(self.batch_norm("stem.norm1", self.convolution("stem.conv1", images, 2)))
        x = self.convolution("stem.conv2", x)
        for stage, depth in enumerate((2, 3, 5, 2)):  # table 3
            for n in range(depth):
                block = self.mbconv if stage < 2 else self.transformer
                x = block(f"stages.{stage}.blocks.{n}", x, 1 if n else 2)
        x = self.layer_norm("head.norm", x.mean((2, 3), keepdim=True)).flatten(1)
        return self.linear("head.fc", self.linear("head.pre_logits.fc", x).tanh())

    def mbconv(self, name: str, x: Tensor, stride: int) -> Tensor:
        """Equation 5; squeeze-excitation: Hu 2018, equations 2 to 4."""
        first, second = (stride, 1) if self.down == "first" else (1, stride)
        y = self.batch_norm(f"{name}.pre_norm", x)
        y = functional.gelu(self.batch_norm(f"{name}.norm1", self.convolution(f"{name}.conv1_1x1", y, first)))
        y = functional.gelu(self.batch_norm(f"{name}.norm2", self.convolution(f"{name}.conv2_kxk", y, second)))
        squeezed = functional.silu(self.convolution(f"{name}.se.fc1", y.mean((2, 3), keepdim=True)))
        y = y * self.convolution(f"{name}.se.fc2", squeezed).sigmoid()
        return self.convolution(f"{name}.conv3_1x1", y) + self.shortcut(name, x, stride)

    def transformer(self, name: str, x: Tensor, stride: int) -> Tensor:
        """Equation 4, then a feed-forward network."""
        y = self.layer_norm(f"{name}.norm1.norm" if stride == 2 else f"{name}.norm1", x)
        y = functional.avg_pool2d(y, stride)
        x = self.shortcut(name, x, stride) + self.convolution(f"{name}.attn.proj", self.attention(f"{name}.attn", y))
        y = functional.gelu(self.convolution(f"{name}.mlp.fc1", self.layer_norm(f"{name}.norm2", x)))
        return x + self.convolution(f"{name}.mlp.fc2", y)

    def attention(self, name: str, x: Tensor) -> Tensor:
        """Equation 3: softmax over j of x_i x_j + w_{i-j}, the scores scaled, heads of 32 features."""
        height, width = x.shape[2:]
        qkv = self.convolution(f"{name}.qkv", x).unflatten(1, (-1, 3, 32)).flatten(4)  # (B, H, 3, 32, N)
        table = self.state[f"{name}.rel_pos.relative_position_bias_table"].view(2 * height - 1, 2 * width - 1, -1)
        at = [(i, j) for i in range(height) for j in range(width)]
        bias = torch.stack([torch.stack([table[i - k + height - 1, j - m + width - 1] for k, m in at]) for i, j in at])
        scores = qkv[:, :, 0].transpose(2, 3) @ qkv[:, :, 1] / 32**0.5 + bias.permute(2, 0, 1)
        return (qkv[:, :, 2] @ scores.softmax(-1).transpose(2, 3)).flatten(1, 2).unflatten(2, (height, width))

    def shortcut(self, name: str, x: Tensor, stride: int) -> Tensor:
        return x if stride == 1 else self.convolution(f"{name}.shortcut.expand", functional.avg_pool2d(x, 2))

    def convolution(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        weight = self.state[f"{name}.weight"]
        groups, padding = x.shape[1] // weight.shape[1], weight.shape[2] // 2
        return functional.conv2d(x, weight, self.state.get(f"{name}.bias"), stride, padding, groups=groups)

    def batch_norm(self, name: str, x: Tensor) -> Tensor:
        mean, var, weight, bias = (
            self.state[f"{name}.{it}"][:, None, None] for it in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * weight + bias

    def layer_norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = (self.state[f"{name}.{it}"][:, None, None] for it in ("weight", "bias"))
        centred = x - x.mean(1, keepdim=True)
        return centred / (centred.square().mean(1, keepdim=True) + 1e-6).sqrt() * weight + bias

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]


@pytest.mark.parametrize("down", ["first", "depthwise"])
def test_coatnet_is_the_papers(down: str) -> None:
    program = build(Case(Coatnet(down, 5), Shape(2, 1, 2, 192, 6), "own", "float64", scope="model"))
    state, drawn = program.module.model.state_dict(), torch.Generator().manual_seed(0)
    for value in state.values():
        if value.is_floating_point():  # every bias and norm off its initial value
            value += 0.1 * torch.rand(value.shape, generator=drawn)
    torch.testing.assert_close(program.call(), Paper(state, down)(*program.inputs), rtol=0, atol=1e-10)
