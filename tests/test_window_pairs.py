"""Which tokens may attend to which: the paper's definition by brute force, against the mask and the closed form.

Liu et al. 2021, section 3.2: two tokens may attend if and only if they share a window after the cyclic shift, and the
wrap-around has not brought them together.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from vitbench.case import Case
from vitbench.operators.window import Window
from vitbench.program import build
from vitbench.shape import Shape

SIDES = [(3, 3), (4, 4), (5, 7), (6, 6), (7, 5), (8, 8), (3, 11), (1, 9), (13, 4), (10, 15)]
WINDOWS = [(window, shift) for window in (1, 2, 3, 4, 7) for shift in range(window)]


def attended_on_axis(side: int, window: int, shift: int) -> np.ndarray:
    """(P, P) bool over the positions of the padded side, before the shift."""
    window = min(window, side)
    padded = -(-side // window) * window
    shift = shift if padded > window else 0
    position = np.arange(padded)
    place = (position - shift) % padded
    share_a_window = place[:, None] // window == place[None, :] // window
    wrapped = position < shift
    return share_a_window & (wrapped[:, None] == wrapped[None, :])


def attended(height: int, width: int, window: int, shift: int) -> np.ndarray:
    """(N, N) bool over the tokens of the padded grid, before the shift."""
    rows, columns = (attended_on_axis(side, window, shift) for side in (height, width))
    return np.kron(rows, columns)


def by_window(grid: np.ndarray, operator: Window, shape: Shape) -> np.ndarray:
    """(P_h, P_w) -> (G, n): rolled by the shift, then cut into windows, row by row."""
    rows, columns = operator.axes(shape)
    rolled = np.roll(grid, (-rows.shift, -columns.shift), (0, 1))
    cut = rolled.reshape(rows.windows, rows.window, columns.windows, columns.window).transpose(0, 2, 1, 3)
    return cut.reshape(rows.windows * columns.windows, -1)


@pytest.mark.parametrize(("window", "shift"), WINDOWS)
def test_the_layers_mask_is_the_papers_definition(window: int, shift: int) -> None:
    for height, width in SIDES:
        operator, shape = Window(window, shift), Shape(1, height, width, 4, 1)
        layer = build(Case(operator, shape, "naive")).module
        rows, columns = operator.axes(shape)
        token = by_window(np.arange(rows.padded * columns.padded).reshape(rows.padded, columns.padded), operator, shape)
        expected = attended(height, width, window, shift)[token[:, :, None], token[:, None, :]]
        mask = layer.masks()[0]
        allowed = np.ones_like(expected) if mask is None else mask[0, :, 0].numpy()
        assert np.array_equal(allowed, expected), (height, width)


@pytest.mark.parametrize(("window", "shift"), WINDOWS)
def test_no_mask_is_held_where_every_pair_of_a_window_may_attend(window: int, shift: int) -> None:
    for height, width in SIDES:
        operator, shape = Window(window, shift), Shape(1, height, width, 4, 1)
        mask = build(Case(operator, shape, "naive")).module.masks()[0]
        assert (mask is not None) == (operator.attentions(shape)[0].mask is not None)
        assert mask is None or not mask.all(), (height, width)


@pytest.mark.parametrize(("window", "shift"), WINDOWS)
def test_useful_pairs_are_the_allowed_pairs_of_real_tokens(window: int, shift: int) -> None:
    for height, width in itertools.product([1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 15, 16], [2, 5, 9, 12]):
        allowed = attended(height, width, window, shift)
        tall = len(attended_on_axis(height, window, shift))
        wide = len(attended_on_axis(width, window, shift))
        real = ((np.arange(tall) < height)[:, None] & (np.arange(wide) < width)[None, :]).ravel()
        brute_force = int(allowed[real][:, real].sum())
        cost = Window(window, shift).cost(Shape(2, height, width, 12, 3))
        assert cost.useful_score_elements == 2 * 3 * brute_force, (height, width)
        assert cost.useful_score_elements <= cost.score_elements


def test_windows_that_fill_an_unshifted_grid_waste_no_score() -> None:
    cost = Window(7).cost(Shape(1, 56, 56, 96, 3))
    assert cost.useful_score_elements == cost.score_elements


def test_a_padding_token_is_attended_to_as_in_the_authors_code() -> None:
    case = Case(Window(3), Shape(1, 4, 4, 8, 1), "naive")
    seen = []

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: object) -> torch.Tensor:
        seen.append(given["mask"])
        return v

    build(case, attend=attend).call()
    assert seen == [None]
