"""Seconds of kernels on a card, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitbench.devices import Card
from vitbench.gpu import CACHED, CONSTANTS, DATASHEET, LATENCY, NAMES, kernel_seconds, seconds
from vitbench.refusal import Refusal
from vitbench.work import KINDS, PRODUCTS, Work

CARD = Card("made", "Made", {"float16": 100e12, "float32": 10e12}, 1e12, "by hand")
FITTED = {
    "compute": 0.5, "memory": 0.8, "launch_seconds": 5e-6, "ramp": 32, "attention_ramp": 16, "strided": 0.25,
    "layout": 0.5,
}  # fmt: skip
PRODUCT = Work("mm", "product", "float16", macs=1e12, read=1e9, written=1e9, inner=64)
COPY = Work("cat", "copy", "float16", macs=0, read=1e9, written=1e9)


def test_the_datasheet_is_the_roofline() -> None:
    assert kernel_seconds(PRODUCT, CARD, DATASHEET) == pytest.approx(2e12 / 100e12)
    assert kernel_seconds(PRODUCT._replace(macs=1e9), CARD, DATASHEET) == pytest.approx(2e9 / 1e12)
    assert kernel_seconds(COPY, CARD, DATASHEET) == pytest.approx(2e9 / 1e12)
    assert kernel_seconds(PRODUCT._replace(dtype="float32"), CARD, DATASHEET) == pytest.approx(2e12 / 10e12)


def test_each_constant_does_what_it_says() -> None:
    launch, moving = 5e-6, 2e9 / 0.8e12
    computing = 2e12 * (1 + 32 / 64) / (0.5 * 100e12)
    assert kernel_seconds(PRODUCT, CARD, FITTED) == pytest.approx(computing + launch)
    attention = PRODUCT._replace(kind="attention")
    assert kernel_seconds(attention, CARD, FITTED) == pytest.approx(2e12 * (1 + 16 / 64) / 50e12 + launch)
    assert kernel_seconds(PRODUCT._replace(macs=1e6), CARD, FITTED) == pytest.approx(moving + launch)
    assert kernel_seconds(COPY, CARD, FITTED) == pytest.approx(moving + launch)
    assert kernel_seconds(COPY._replace(launches=3), CARD, FITTED) == pytest.approx(moving + 3 * launch)
    assert kernel_seconds(COPY._replace(strided=True), CARD, FITTED) == pytest.approx(4 * moving + launch)
    assert kernel_seconds(COPY._replace(serial=1000), CARD, FITTED) == pytest.approx(moving + launch + 1000 * LATENCY)


@pytest.mark.parametrize("kind", ["convolution", "grouped", "depthwise"])
def test_convolutions_pass_over_their_bytes_again(kind: str) -> None:
    product = PRODUCT if kind == "convolution" else PRODUCT._replace(dtype="float32")
    found = kernel_seconds(PRODUCT._replace(kind=kind), CARD, FITTED)
    assert found == pytest.approx(kernel_seconds(product, CARD, FITTED) + 0.5 * 2e9 / 0.8e12)


@pytest.mark.parametrize("kind", ["grouped", "depthwise"])
def test_convolutions_in_groups_gain_nothing_from_tensor_cores(kind: str) -> None:
    assert kernel_seconds(PRODUCT._replace(kind=kind, inner=9), CARD, DATASHEET) == pytest.approx(2e12 / 10e12)


@pytest.mark.parametrize(("held", "share"), [(1e6, 1), (1e9, 0.5), (1e12, 0)])
def test_what_the_l2_cache_holds_moves_faster(held: float, share: float) -> None:
    """held: bytes of a kernel, on a card whose cache has 10^9."""
    work = COPY._replace(read=held / 2, written=held / 2)
    found = kernel_seconds(work, replace(CARD, l2=10**9), DATASHEET)
    assert found == pytest.approx(held / 1e12 * (1 - share * (1 - CACHED)), rel=1e-3)
    assert kernel_seconds(work, CARD, DATASHEET) == pytest.approx(held / 1e12)  # its size is not known


def test_each_of_many_launches_has_the_cache_for_itself() -> None:
    large, many = replace(CARD, l2=10**9), COPY._replace(launches=1000)
    assert kernel_seconds(many, large, DATASHEET) == pytest.approx(2e9 / 1e12 * CACHED, rel=1e-3)


def test_what_is_looked_up_comes_from_the_cache() -> None:
    found = kernel_seconds(COPY._replace(looked=1e9), CARD, DATASHEET)
    assert found == pytest.approx((2e9 + 1e9 * CACHED) / 1e12)


def test_a_call_is_the_sum_of_its_kernels() -> None:
    every = [PRODUCT, COPY, PRODUCT._replace(kind="attention")]
    assert seconds(every, CARD, FITTED) == pytest.approx(sum(kernel_seconds(one, CARD, FITTED) for one in every))
    assert seconds([], CARD, FITTED) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constants", [DATASHEET, FITTED], ids=["datasheet", "fitted"])
def test_arrays_are_told_as_numbers_are(kind: str, constants: dict[str, float]) -> None:
    macs, moved, inner = np.array([1e6, 1e9, 1e12]), np.array([1e9, 1e6, 1e3]), np.array([16.0, 64, 4096])
    together = kernel_seconds(Work("any", kind, "float16", macs, moved, 2 * moved, inner), CARD, constants)
    alone = [
        kernel_seconds(Work("any", kind, "float16", *(float(x) for x in row)), CARD, constants)
        for row in zip(macs, moved, 2 * moved, inner, strict=True)
    ]
    assert together == pytest.approx(alone)


def test_a_dtype_without_a_peak_is_refused_where_it_computes_and_not_where_it_moves() -> None:
    assert kernel_seconds(COPY._replace(dtype="int64"), CARD, DATASHEET) > 0
    with pytest.raises(Refusal, match="no known peak in int64"):
        kernel_seconds(PRODUCT._replace(dtype="int64"), CARD, DATASHEET)


def test_constants_begin_within_their_ranges_and_no_card_beats_its_datasheet_by_much() -> None:
    assert len(set(NAMES)) == len(NAMES) and set(DATASHEET) == set(NAMES) == set(FITTED)
    for one in CONSTANTS:
        assert 0 < one.low < one.start < one.high and one.unit in ("1", "s") and one.meaning
    ideal = seconds([PRODUCT, COPY], CARD, DATASHEET)
    best = {one.name: one.high if one.name in ("compute", "memory", "strided") else one.low for one in CONSTANTS}
    assert 0.7 * ideal < seconds([PRODUCT, COPY], CARD, best)
    assert set(PRODUCTS) < set(KINDS)
