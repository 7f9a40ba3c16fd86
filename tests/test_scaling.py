"""The study of the division by sqrt(d): published values, and its parts against torch."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from analysis.load import Run
from analysis.scaling import FP16_MAX, Scaling, digit_tokens, jacobian_norm, measure, overflowing, softmax
from analysis.study import studies

RUN = Run(Path(), None, {}, {}, {})  # type: ignore[arg-type]  # the study asks nothing of a run

# d -> spread of the raw scores, mean largest weight and norm of the softmax's Jacobian of the raw scores; as published
PUBLISHED = {
    4: (2.0, 0.28, 0.313),
    16: (4.1, 0.45, 0.318),
    64: (8.2, 0.60, 0.269),
    256: (16.3, 0.74, 0.200),
    1024: (32.1, 0.81, 0.142),
}
SCALED_WEIGHT, SCALED_NORM, WITHIN = (0.17, 0.18), (0.285, 0.290), 0.05  # whatever d


def tokens() -> np.ndarray:
    pytest.importorskip("sklearn")
    found = digit_tokens()
    assert found is not None
    return found


@cache
def measured(d: int) -> Scaling:
    return measure(tokens(), d)


@pytest.mark.parametrize("d", PUBLISHED)
def test_raw_scores_come_within_5_percent_of_the_published_values(d: int) -> None:
    found = measured(d)
    assert (found.std, found.raw.largest, found.raw.jacobian) == pytest.approx(PUBLISHED[d], rel=WITHIN)


@pytest.mark.parametrize("d", PUBLISHED)
def test_scaled_scores_come_within_5_percent_of_the_published_ranges(d: int) -> None:
    found = measured(d).scaled
    for value, (low, high) in ((found.largest, SCALED_WEIGHT), (found.jacobian, SCALED_NORM)):
        assert low * (1 - WITHIN) <= value <= high * (1 + WITHIN)


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_gives_the_same(seed: int) -> None:
    """Within 3 %, over three standard errors of the least steady of them, the spread."""
    one, other = measured(64), measure(tokens(), 64, seed=seed)
    for mean in (lambda of_d: of_d.std, lambda of_d: of_d.raw.largest, lambda of_d: of_d.raw.jacobian):
        assert mean(other) == pytest.approx(mean(one), rel=0.03)


def test_tokens_are_the_standardised_patches_of_2_by_2() -> None:
    found = torch.from_numpy(tokens())
    images = torch.from_numpy(pytest.importorskip("sklearn.datasets").load_digits().images)
    patches = torch.nn.functional.unfold(images[:, None], 2, stride=2).transpose(1, 2)
    std, mean = torch.std_mean(patches, (0, 1), correction=0)
    assert found.shape == (1797, 16, 4)
    torch.testing.assert_close(found * std + mean, patches)
    torch.testing.assert_close(found.mean((0, 1)), torch.zeros(4, dtype=torch.float64))


def test_scores_are_those_of_projected_queries_and_keys() -> None:
    """The same draws, with q and k written out."""
    x, d = np.random.default_rng(5).standard_normal((3, 7, 4)), 32
    found = measure(x, d, draws=1)
    random = np.random.default_rng([0, d])
    w_q, w_k = (random.standard_normal((3, 4, d), np.float32) / 2 for _ in range(2))
    q, k = torch.from_numpy(x @ w_q), torch.from_numpy(x @ w_k)
    scores = torch.einsum("bnd,bmd->bnm", q, k)
    weights = torch.softmax(scores / math.sqrt(d), -1)
    reach = q.norm(dim=-1).amax(1) * k.norm(dim=-1).amax(1)
    assert found.count == scores.numel()
    assert found.std == pytest.approx(float(scores.std(correction=0)), rel=1e-5)
    assert found.largest == pytest.approx(float(scores.abs().max()), rel=1e-5)
    assert found.reach == pytest.approx(float(reach.max()), rel=1e-5)
    assert found.scaled.largest == pytest.approx(float(weights.amax(-1).mean()), rel=1e-5)
    assert found.largest <= found.reach


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_norm_is_that_of_torchs_jacobian(scale: float) -> None:
    scores = scale * np.random.default_rng(7).standard_normal((5, 16))
    for row in scores:
        jacobian = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), torch.from_numpy(row))
        expected = float(jacobian.norm())  # beside a weight of nearly 1, float64 leaves 1e-8 of noise to either
        assert jacobian_norm(softmax(row)) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_one_weight_alone_passes_no_gradient() -> None:
    assert jacobian_norm(np.array([1.0, 0.0, 0.0])) == 0


def test_fp16_overflows_where_torchs_does() -> None:
    scores = np.array([0.0, FP16_MAX, -FP16_MAX, 65_519.0, 65_520.0, -7e4, 1e9, 3.0])
    expected = torch.isinf(torch.from_numpy(scores).to(torch.float16)).double().mean()
    assert torch.finfo(torch.float16).max == FP16_MAX
    assert overflowing(scores) == float(expected) == 3 / 8


@pytest.mark.parametrize("size", [1.0, 10.0])
def test_at_the_d_named_the_largest_score_is_the_last_of_fp16(size: float) -> None:
    found = measured(1024)
    grown = found.largest * size**2 * math.sqrt(found.overflow_d(size) / found.d)
    aligned = found.reach * size**2 * found.overflow_d_aligned(size) / found.d
    assert (grown, aligned) == pytest.approx((FP16_MAX, FP16_MAX))


def test_the_largest_score_grows_as_sqrt_d_and_the_reach_as_d() -> None:
    """As the d at which fp16 overflows takes for granted; a largest value is steady to some 20 %, four times is not."""
    near, far = measured(64), measured(1024)
    assert far.largest / near.largest == pytest.approx(4, rel=0.3)
    assert far.reach / near.reach == pytest.approx(16, rel=0.3)


def test_the_study_answers_without_records() -> None:
    tokens()
    answer = studies["scaling"].answer(RUN)
    assert answer is not None
    assert list(answer.table["d"]) == [str(d) for d in PUBLISHED]
    assert [float(cell) for cell in answer.table["spread of scores"]] == pytest.approx(
        [measured(d).std for d in PUBLISHED], rel=5e-3
    )
    assert f"{measured(1024).raw.jacobian:.3f}" in answer.sentence
    assert f", 0 of the {sum(measured(d).count for d in PUBLISHED):,} unscaled scores overflow" in answer.sentence
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in answer.figure.axes)


def test_the_study_has_no_answer_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert studies["scaling"].answer(RUN) is None


def test_the_study_imports_no_torch() -> None:
    tokens()
    code = "import sys; from analysis.scaling import *; measure(digit_tokens(), 4); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
