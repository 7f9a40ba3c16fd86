"""The worked example: softmax of [ln 2, 0, 0] is [1/2, 1/4, 1/4]; values (2, 0), (0, 2), (0, 0) mix to (1, 1/2)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.operators.global_ import Global
from vitbench.shape import Shape

D = 16
CASE = Case(Global(), Shape(1, 1, 3, D, 1), "naive", scope="core")
HERE = [
    pytest.param(backend.name, marks=[pytest.mark.slow] if backend.compiled else [])
    for backend in backends
    if refused(replace(CASE, backend=backend.name)) is None
]


def rows(*values: tuple[float, ...]) -> torch.Tensor:
    """(1, 1, 1, rows, D), zeros behind the values given."""
    padded = [[*row, *[0.0] * (D - len(row))] for row in values]
    return torch.tensor(padded)[None, None, None]


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("name", HERE)
def test_every_backend_gives_the_worked_example(name: str) -> None:
    q = rows((math.log(2) * math.sqrt(D),), (0.0,), (0.0,))  # scores are over sqrt(d)
    k = rows((1.0,), (0.0,), (0.0,))
    v = rows((1, 0, 0, 2, 0), (0, 1, 0, 0, 2), (0, 0, 1, 0, 0))  # the unit vectors give the weights themselves
    with torch.inference_mode():
        out = backends[name].attend(q, k, v, bias=None, mask=None)
    assert out.shape == q.shape
    torch.testing.assert_close(out[0, 0, 0, 0, :5], torch.tensor([0.5, 0.25, 0.25, 1.0, 0.5]), rtol=0, atol=1e-6)
    torch.testing.assert_close(out[0, 0, 0, 1:, :3], torch.full((2, 3), 1 / 3), rtol=0, atol=1e-6)
