"""Training on CUDA is traced on the CPU: what autocast does there is what it does on fake CUDA tensors."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch import Tensor, nn

from vitbench.autocast import as_on_cuda, autocast
from vitbench.source import open_source
from vitbench.step import Step
from vitbench.trace import trace

MODELS = ("vit_ti_16", "convnext_t", "timm:vit_tiny_patch16_224", "timm:swin_tiny_patch4_window7_224")


def told(steps: list[Step]) -> list[object]:
    """All but the numbers of storages, which an empty one may shift."""
    return [(step[:5], [[part[1:] for part in parts] for parts in (step.given, step.made)]) for step in steps]


@pytest.mark.parametrize("source", MODELS)
def test_a_trace_on_the_cpu_in_place_of_cuda_is_the_same_step_by_step(source: str) -> None:
    if ":" in source and find_spec("timm") is None:
        pytest.skip("timm is not installed")
    opened = open_source(source)
    there, here = trace(opened, 1), trace(opened, 1, on="cpu")
    assert told(list(here.steps)) == told(list(there.steps))
    assert here.held == there.held
    without = trace(opened, 1, dtype="float16", on="cpu")
    assert {step.dtype for step in without.steps if step.macs} == {"float16"}


def dtypes(run: object, dtype: str = "amp") -> tuple[torch.dtype, torch.dtype]:
    """Of a result under the CPU's autocast, and under CUDA's on the CPU."""
    x = torch.randn(2, 4, 8, 8, dtype=torch.float16)

    def once() -> torch.dtype:
        with autocast("cpu", dtype):
            out = run(x)  # type: ignore[operator]
            assert isinstance(out, Tensor)
            return out.dtype

    apart = once()
    with as_on_cuda():
        inside = once()
    assert once() == apart, "the lists stay"
    return apart, inside


@pytest.mark.parametrize(
    "run",
    [
        lambda x: nn.functional.layer_norm(x, (8,)),
        lambda x: x.exp(),
        lambda x: x**2,
        lambda x: x.sum(-1),
        lambda x: x.cumsum(-1),
        lambda x: nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
        lambda x: nn.functional.normalize(x, dim=1),
    ],
    ids=["layer_norm", "exp", "pow", "sum", "cumsum", "interpolate", "normalize"],
)
def test_what_cuda_runs_in_float32_does_so_on_the_cpu(run: object) -> None:
    assert dtypes(run) == (torch.float16, torch.float32)


def test_what_it_leaves_alone_stays() -> None:
    assert dtypes(lambda x: nn.functional.gelu(x)) == (torch.float16, torch.float16)
    mixed = dtypes(lambda x: torch.cat([x, x.float()]))
    assert mixed == (torch.float32, torch.float32)
    assert dtypes(lambda x: x.sum(-1, dtype=torch.float16))[1] == torch.float16


def test_training_on_cuda_needs_none() -> None:
    found = trace(open_source("vit_ti_16"), 1, mode="training")
    forward = trace(open_source("vit_ti_16"), 1)
    assert found.held is not None and forward.held is not None
    macs, once = (sum(step.macs for step in one.steps) for one in (found, forward))
    assert 2.9 < macs / once < 3.2
    attention = [step for step in found.steps if step.kind == "attention"]
    assert len(attention) == 2 * 12 and {step.dtype for step in attention} == {"float16"}
    norms = [step for step in found.steps if "layer_norm" in step.operator]
    assert len(norms) == 2 * 25 and {step.dtype for step in norms} == {"float32"}
    assert found.held.peak() > forward.held.peak()
    assert max(fixed for fixed, _ in found.held.moments) >= found.held.parameter_bytes  # at its end, all gradients
