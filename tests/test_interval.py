"""Estimates and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import text
from vitbench.interval import SETTLED_PASSES, estimate, half_width, ratio, unpaired_ratio


def test_the_estimate_is_the_median_of_the_passes_medians() -> None:
    middle, low, high = estimate([[1.0, 1.0, 9.0], [2.0, 2.0, 2.0], [3.0, 30.0, 3.0]])
    assert middle == 2.0
    assert low <= 2.0 <= high


def test_one_odd_process_widens_the_interval_though_its_samples_agree() -> None:
    quiet = estimate([[1.0] * 50, [1.01] * 50, [1.02] * 50])
    odd = estimate([[1.0] * 50, [1.01] * 50, [1.5] * 50])
    assert odd[2] - odd[1] > 5 * (quiet[2] - quiet[1])


def test_intervals_of_many_passes_hold_the_true_median_about_as_often_as_they_say() -> None:
    draw = np.random.default_rng(1)
    held = 0
    for trial in range(200):
        passes = [draw.normal(10 + draw.normal(0, 0.5), 0.1, 20).tolist() for _ in range(12)]
        _, low, high = estimate(passes, seed=trial)
        held += low <= 10 <= high
    assert 0.88 <= held / 200 <= 0.99


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0123, "s", "12.3 ms"),
        (50_430_000, "B", "50.4 MB"),
        (999.6e9, "MAC", "1,000 GMAC"),
        (None, "B", "-"),
        (0, "B", "0 B"),
    ],
)
def test_quantities_read_as_people_write_them(value: float | None, unit: str, words: str) -> None:
    assert text.quantity(value, unit) == words


def test_a_time_and_its_interval_share_a_unit() -> None:
    assert text.seconds(0.00101, 0.00098, 0.00112) == "1.01 ms (0.980 to 1.12)"


def test_a_ratio_is_free_of_what_slowed_a_whole_pass() -> None:
    slowed = {0: 1.0, 1: 1.4, 2: 0.9, 3: 2.0, 4: 1.1, 5: 1.2}
    value, low, high = ratio({p: 1.06 * s for p, s in slowed.items()}, slowed)
    assert (value, low, high) == pytest.approx((1.06, 1.06, 1.06))


def test_a_ratio_takes_only_the_passes_that_hold_both() -> None:
    assert ratio({0: 3.0, 1: 3.0, 7: 100.0}, {0: 1.0, 1: 1.0, 8: 1.0})[0] == 3.0


def test_one_shared_pass_gives_no_interval_and_none_gives_nothing() -> None:
    assert text.ratio(*ratio({0: 3.0}, {0: 1.5})) == "2.00x"
    assert text.ratio(*ratio({0: 3.0}, {1: 1.5})) == "-"
    assert text.percent(*ratio({0: 3.0}, {1: 1.5})) == "-"


def test_six_passes_are_the_fewest_with_an_exact_interval_and_it_is_their_range() -> None:
    ratios = dict(enumerate([1.01, 0.98, 1.3, 1.02, 1.0, 0.9]))
    ones = dict.fromkeys(ratios, 1.0)
    assert ratio(ratios, ones) == pytest.approx((1.005, 0.9, 1.3))
    assert len(ratios) == SETTLED_PASSES
    del ratios[0]
    middle, low, high = ratio(ratios, ones)
    assert middle == 1.0 and np.isnan([low, high]).all()


@pytest.mark.parametrize("passes", [6, 9])
def test_identical_cases_are_told_apart_in_at_most_5_percent(passes: int) -> None:
    draw = np.random.default_rng(passes)
    paired = unpaired = 0
    for _ in range(600):
        one, other = np.exp(draw.normal(0, 0.08, (2, passes)))
        _, low, high = ratio(dict(enumerate(one)), dict(enumerate(other)))
        paired += low > 1 or high < 1
        _, low, high = unpaired_ratio(one.tolist(), other.tolist())
        unpaired += low > 1 or high < 1
    assert 0 < paired / 600 <= 0.05 + 0.02, "an interval that is never wrong would be too wide"
    assert 0 < unpaired / 600 <= 0.05 + 0.02


def test_an_unpaired_ratio_of_two_separate_groups_is_found() -> None:
    middle, low, high = unpaired_ratio([2.0, 2.1, 2.2, 2.3, 2.4, 2.5], [1.0, 1.01, 1.02, 1.03, 1.04, 1.05])
    assert 1.9 < low < middle < high < 2.5
    assert middle == pytest.approx(2.19, abs=0.02)
    assert np.isnan(unpaired_ratio([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])[1])


def test_half_width_is_a_share_of_the_estimate() -> None:
    assert half_width((2.0, 1.9, 2.1)) == pytest.approx(0.05)


def test_passes_that_agree_to_the_last_digit_have_an_interval_of_no_width() -> None:
    assert estimate([[2.0, 2.0], [2.0, 2.0]]) == (2.0, 2.0, 2.0)
