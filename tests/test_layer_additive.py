"""Additive attention against the paper's score, pair by pair, and what it holds."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from vitbench.case import Case
from vitbench.operators.additive import Additive
from vitbench.program import build
from vitbench.shape import Shape

SHAPE = Shape(2, 3, 3, 24, 3, prefix=1)
CASE = Case(Additive(), SHAPE, "own", "float64")


def attention(q: np.ndarray, k: np.ndarray, values: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q, k: W s and U h. Scores v^T tanh(q_i + k_j), softmax, context (Bahdanau 2015, equations 5, 6 and A.1.2)."""
    context = np.zeros_like(values)
    for i in range(len(q)):
        scores = [sum(v[c] * np.tanh(q[i, c] + k[j, c]) for c in range(len(v))) for j in range(len(k))]
        weights = np.exp(scores) / np.exp(scores).sum()
        for j in range(len(k)):
            context[i] += weights[j] * values[j]
    return context


def test_the_layer_is_the_papers_score_in_every_head() -> None:
    program = build(CASE)
    state = {name: value.numpy() for name, value in program.module.state_dict().items()}
    x, d = program.inputs[0].numpy(), SHAPE.head_dim
    q, k, values = np.split(x @ state["qkv.weight"].T + state["qkv.bias"], 3, axis=-1)
    mixed = np.zeros_like(x)
    for image in range(len(x)):
        for head in range(SHAPE.heads):
            part = (image, slice(None), slice(head * d, head * d + d))
            mixed[part] = attention(q[part], k[part], values[part], state["v"][head])
    expected = torch.from_numpy(mixed @ state["proj.weight"].T + state["proj.bias"])
    torch.testing.assert_close(program.call(), expected, rtol=0.0, atol=1e-10)


class Outputs(TorchDispatchMode):
    """Elements that each of torch's operators gives."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__.strip("_")
        if isinstance(out, torch.Tensor):
            self.elements[name] = self.elements.get(name, 0) + prod(out.shape)
        return out


def test_scores_on_paper_are_those_of_the_softmax_and_each_takes_d_tanh() -> None:
    program = build(CASE, device="meta")
    with Outputs() as outputs:
        program.call()
    assert outputs.elements["softmax"] == CASE.cost().score_elements == CASE.cost().useful_score_elements
    assert outputs.elements["tanh"] == SHAPE.head_dim * CASE.cost().score_elements
