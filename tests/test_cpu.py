"""The time of a CPU: demands over rates, added up."""

from __future__ import annotations

import pytest

from vitbench.cpu import CACHED_BYTES, CONSTANTS, NAMES, demand, prices, seconds
from vitbench.work import Work

PRODUCT = Work("addmm", "product", "float32", macs=1000, read=60, written=40, inner=10)
ATTENTION = Work("flash", "attention", "float32", macs=6400, read=300, written=100, inner=32)
LARGE = Work("add", "pointwise", "float32", macs=0, read=CACHED_BYTES, written=4)
GATHER = Work("index_put_", "copy", "float32", macs=0, read=7, written=7)
SAFE = Work("_safe_softmax", "reduction", "float32", macs=0, read=4, written=4)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (PRODUCT, (1000, 0, 0, 100, 0, 1)),
        (ATTENTION, (6400, 100, 0, 400, 0, 1)),  # a query-key pair costs 32 MACs of its score and 32 of the mix
        (LARGE, (0, 0, CACHED_BYTES + 4, 0, 0, 1)),
        (LARGE._replace(written=0), (0, 0, 0, CACHED_BYTES, 0, 1)),
        (LARGE._replace(launches=2), (0, 0, 0, CACHED_BYTES + 4, 0, 2)),  # two of half the size
        (GATHER, (0, 0, 0, 0, 14, 1)),
        (SAFE, (0, 0, 0, 22, 0, 1)),
    ],
)
def test_what_an_operator_demands(work: Work, expected: tuple[float, ...]) -> None:
    assert demand([work]) == expected


def test_demands_of_a_program_add_up() -> None:
    assert demand([PRODUCT, ATTENTION, LARGE]) == (7400, 100, CACHED_BYTES + 4, 500, 0, 3)


def test_seconds_are_demands_over_rates() -> None:
    constants = dict(zip(NAMES, (1000.0, 10.0, CACHED_BYTES + 4.0, 50.0, 14.0, 0.5), strict=True))
    assert seconds([PRODUCT, ATTENTION, LARGE, GATHER], constants) == pytest.approx(7.4 + 10 + 1 + 10 + 1 + 4 * 0.5)
    assert prices(constants)[0] == 1e-3 and prices(constants)[-1] == 0.5


def test_every_constant_starts_within_its_range() -> None:
    assert all(0 < one.low < one.start < one.high for one in CONSTANTS)
