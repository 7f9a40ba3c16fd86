"""Tiny modules on which counters differ, each by as few reasons as can be, and what counters say of them.

`counted()` asks every counter, a process each, of every module under every variation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitbench.counter import counters

Made = tuple[nn.Module, tuple[Tensor, ...]]
TOKENS, PIXELS = (2, 6, 8), (2, 8, 6, 6)


class Called(nn.Module):
    """A function of torch's, called by a module that has a parameter, which some counters ask for."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.unused = nn.Parameter(torch.ones(1))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


class Beside(nn.Identity):
    """A parameter for a model that has none, which some counters ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.ones(1))


class SubLinear(nn.Linear):
    """Of another class than nn.Linear."""


class SubConv(nn.Conv2d):
    """Of another class than nn.Conv2d."""


class SubNorm(nn.LayerNorm):
    """Of another class than nn.LayerNorm."""


class Itself(nn.Module):
    """Self-attention, whose query, key and value are one tensor."""

    def __init__(self, need_weights: bool = True, batch_first: bool = True, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=batch_first)
        self.need_weights = need_weights

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x, x, x, need_weights=self.need_weights)[0]
        return out


def timms(bare: bool) -> Made:
    """timm's Attention; bare: without the linear layers inside."""
    from timm.layers.attention import Attention

    module = Attention(8, 2)
    if bare:
        module.add_module("qkv", Called(lambda x: torch.cat((x, x, x), -1)))
        module.add_module("proj", Called(lambda x: x))
    return module, tokens()


def tokens() -> tuple[Tensor]:
    return (torch.zeros(TOKENS),)


def pixels() -> tuple[Tensor]:
    return (torch.zeros(PIXELS),)


def called(function: Callable[..., Tensor], inputs: Callable[[], tuple[Tensor, ...]] = tokens) -> Callable[[], Made]:
    return lambda: (Called(function), inputs())


def built(make: Callable[[], nn.Module], inputs: Callable[[], tuple[Tensor, ...]] = tokens) -> Callable[[], Made]:
    def of_both() -> Made:
        module = make()
        return module if any(True for _ in module.parameters()) else nn.Sequential(module, Beside()), inputs()

    return of_both


TINY: dict[str, Callable[[], Made]] = {
    "linear": built(lambda: nn.Linear(8, 4)),
    "linear_without_bias": built(lambda: nn.Linear(8, 4, bias=False)),
    "linear_of_rows": built(lambda: nn.Linear(8, 4), lambda: (torch.zeros(3, 8),)),
    "linear_by_subclass": built(lambda: SubLinear(8, 4, bias=False)),
    "linear_as_function": called(lambda x: functional.linear(x, x.new_ones(4, 8))),
    "convolution": built(lambda: nn.Conv2d(8, 4, 3), pixels),
    "convolution_without_bias": built(lambda: nn.Conv2d(8, 4, 3, bias=False), pixels),
    "convolution_by_subclass": built(lambda: SubConv(8, 4, 3, bias=False), pixels),
    "convolution_as_function": called(lambda x: functional.conv2d(x, x.new_ones(4, 8, 3, 3)), pixels),
    "convolution_same": built(lambda: nn.Conv2d(8, 4, 3, padding="same", bias=False), pixels),
    "at": called(lambda x: x @ x.mT),
    "matmul": called(lambda x: x.matmul(x.mT)),
    "mm": called(lambda x: torch.mm(x[0], x[0].T)),
    "bmm": called(lambda x: torch.bmm(x, x.mT)),
    "baddbmm": called(lambda x: torch.baddbmm(x.new_ones(1, 1, 6), x, x.mT)),
    "einsum": called(lambda x: torch.einsum("bij,bkj->bik", x, x)),
    "vector": called(lambda x: torch.mv(x[0], x[0, 0])),
    "fused_attention": called(lambda x: functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])),
    "multihead_attention": built(Itself),
    "multihead_attention_without_weights": built(lambda: Itself(need_weights=False)),
    "multihead_attention_batch_second": built(lambda: Itself(batch_first=False)),
    "encoder_layer": built(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)),
    "layer_norm": built(lambda: nn.LayerNorm(8)),
    "layer_norm_without_weights": built(lambda: nn.LayerNorm(8, elementwise_affine=False)),
    "layer_norm_by_subclass": built(lambda: SubNorm(8)),
    "batch_norm": built(lambda: nn.BatchNorm2d(8), pixels),
    "batch_norm_without_weights": built(lambda: nn.BatchNorm2d(8, affine=False), pixels),
    "instance_norm": built(lambda: nn.InstanceNorm2d(8, affine=True), pixels),
    "instance_norm_without_weights": built(lambda: nn.InstanceNorm2d(8), pixels),
    "group_norm": built(lambda: nn.GroupNorm(2, 8), pixels),
    "gelu": built(nn.GELU),
    "gelu_as_function": called(lambda x: functional.gelu(x)),
    "leaky_relu": built(nn.LeakyReLU),
    "softmax_as_module": built(lambda: nn.Softmax(-1)),
    "softmax": called(lambda x: functional.softmax(x, -1)),
    "softmax_as_method": called(lambda x: x.softmax(-1)),
    "adaptive_pooling": built(lambda: nn.AdaptiveAvgPool2d(1), pixels),
    "adaptive_pooling_as_function": called(lambda x: functional.adaptive_avg_pool2d(x, 1), pixels),
    "average_pooling": built(lambda: nn.AvgPool2d(2), pixels),
    "interpolation": called(lambda x: functional.interpolate(x, (9, 9), mode="bilinear"), pixels),
    "nearest": called(lambda x: functional.interpolate(x, scale_factor=2), pixels),
    "sampling": called(lambda x: functional.grid_sample(x, x.new_zeros(2, 5, 5, 2), align_corners=False), pixels),
    "add": called(lambda x: torch.add(x, x)),
    "plus": called(lambda x: x + x * x),
    "timm_attention": lambda: timms(bare=False),
    "timm_attention_bare": lambda: timms(bare=True),
}


WIDE = (1, 197, 768)
KNOWN = {  # sizes of which counts are known
    "vit_b_16": "vit_b_16",
    "multihead_attention": "tiny:wide_attention",
    "encoder_layer": "tiny:wide_encoder_layer",
    "core": "tiny:wide_core",
}


def wide_attention() -> Made:
    return Itself(width=768, heads=12), (torch.zeros(WIDE),)


def wide_encoder_layer() -> Made:
    return nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True), (torch.zeros(WIDE),)


def wide_core() -> Made:
    return Called(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v)), tuple(
        torch.zeros(1, 12, 197, 64) for _ in range(3)
    )


def __getattr__(name: str) -> Callable[[], Made]:
    """Each is a source, tiny:linear."""
    if name not in TINY:
        raise AttributeError(name)
    return TINY[name]


@cache
def counted() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By counter and place (fvcore.device), then by module: the answers of the worker of an audit."""
    groups = {"exact": ["exact.meta"]}  # of what may meet in one process
    for one in counters:
        if not one.lacking():
            groups.setdefault(one.name.partition(".")[0], []).extend(f"{one.name}.{place}" for place in one.audited)
    cores, keys = len(os.sched_getaffinity(0)), [*groups.values()]
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for start in range(0, len(keys), cores):
        for child in [_start(*group) for group in keys[start : start + cores]]:
            out, _ = child.communicate()
            assert child.returncode == 0, child.args
            found |= json.loads(out)
    return found


def _start(*keys: str) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(here.parent), str(here)])}
    command = [sys.executable, str(here / "tiny.py"), *keys]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)


def main(keys: list[str]) -> None:
    import warnings

    from vitbench.audits.worker import answers

    warnings.simplefilter("ignore")
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found: dict[str, Any] = {}
    for key in keys:
        counter, _, place = key.rpartition(".")
        found[key] = {name: list(answers(counter, place, f"tiny:{name}", None)) for name in TINY}
        known = {f"known {name}": [next(answers(counter, place, source, None))] for name, source in KNOWN.items()}
        found[key] |= known
    json.dump(found, answer)
    answer.close()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
