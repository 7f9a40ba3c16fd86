"""Bytes at the peak of one call: the closed form against torch's CPU allocator."""

from __future__ import annotations

import pytest
import torch

from vitbench.backend import backends, refused
from vitbench.case import Case
from vitbench.measure import memory
from vitbench.operator import parse_operator
from vitbench.peak import peak_bytes
from vitbench.program import build
from vitbench.shape import Shape

SHAPES = {
    "global": [
        Shape(1, 14, 14, 192, 3, prefix=1),
        Shape(4, 7, 7, 96, 4, prefix=1),
        Shape(1, 8, 8, 64, 1),
        Shape(3, 9, 5, 64, 1),
        Shape(1, 28, 28, 64, 2),  # flash takes longer tiles from 768 tokens up
        Shape(2, 3, 3, 256, 2),  # features outweigh scores
    ],
    "window4": [Shape(1, 8, 8, 32, 2), Shape(2, 10, 7, 48, 3), Shape(2, 4, 4, 32, 2), Shape(1, 3, 4, 32, 1)],
    "window40": [Shape(2, 37, 37, 5, 1)],  # the bias of one head outweighs all
    "window7": [
        Shape(1, 28, 28, 96, 3),
        Shape(1, 7, 7, 16, 8),
        Shape(2, 7, 7, 96, 1),
        Shape(2, 7, 21, 64, 2),
        Shape(3, 1, 23, 32, 2),
    ],
    "window7-shift3": [
        Shape(1, 28, 28, 96, 3),
        Shape(2, 14, 14, 64, 1),
        Shape(2, 15, 16, 64, 2),
        Shape(3, 5, 20, 32, 2),
        Shape(2, 20, 5, 32, 4),
        Shape(2, 5, 5, 32, 2),
    ],
}
KNOWN = [
    Case(parse_operator(text), shape, backend.name, scope=scope)
    for text, shapes in SHAPES.items()
    for shape in shapes
    for backend in backends
    for scope in parse_operator(text).scopes
    if backend.name.startswith(("naive", "sdpa"))
    and not backend.compiled
    and refused(Case(parse_operator(text), shape, backend.name)) is None
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.id)
def test_peak_memory_is_the_closed_form(case: Case) -> None:
    program = build(case)
    program.call()  # so that nothing is set up for the first time
    expected = peak_bytes(case)
    assert expected is not None
    assert memory.peak_bytes(program.call, "cpu") == pytest.approx(expected, rel=1e-3)


def test_each_thread_of_flash_holds_its_own_tiles() -> None:
    case = Case(parse_operator("global"), Shape(2, 14, 14, 192, 3, prefix=1), "sdpa.flash", scope="core")
    program, threads = build(case), torch.get_num_threads()
    one_thread = peak_bytes(case)
    torch.set_num_threads(2)
    try:
        program.call()
        expected, measured = peak_bytes(case), memory.peak_bytes(program.call, "cpu")
    finally:
        torch.set_num_threads(threads)
    assert one_thread is not None and expected is not None
    assert expected - one_thread == 4 * (64 * 197 + 2 * 64 + 64 * 64)  # scores, row statistics and output of a tile
    assert measured == pytest.approx(expected, rel=1e-3)


def test_the_naive_peak_of_a_large_image_is_two_score_matrices() -> None:
    case = Case(parse_operator("global"), Shape(1, 32, 32, 768, 12, prefix=1), "naive", scope="core")
    scores = 4 * 12 * 1025**2
    assert peak_bytes(case) == 2 * scores == 100_860_000  # measured by memray and torch's profiler: 100,860,012


def test_no_peak_is_given_where_no_closed_form_is_known() -> None:
    shape = Shape(1, 7, 7, 32, 2)
    assert peak_bytes(Case(parse_operator("global"), shape, "naive", mode="training")) is None
    assert peak_bytes(Case(parse_operator("global"), shape, "naive.compiled")) is None


def test_memory_counts_what_a_call_holds_at_once_and_not_what_it_took_in_all() -> None:
    def call() -> torch.Tensor:
        for _ in range(5):
            torch.empty(1_000_000, dtype=torch.uint8)
        return torch.empty(2_000_000, dtype=torch.uint8)

    assert memory.peak_bytes(call, "cpu") == 2_000_000


def test_a_call_that_allocates_nothing_has_a_peak_of_0() -> None:
    assert memory.peak_bytes(lambda: None, "cpu") == 0


def test_a_token_alone_in_its_group_has_no_closed_form() -> None:
    assert peak_bytes(Case(parse_operator("window1"), Shape(2, 9, 24, 32, 2), "naive")) is None
