"""What a step reads and writes, and how its work grows with the batch and with whole tiles."""

from __future__ import annotations

import pytest

from vitbench.step import Part, Step, Trace

BATCH, N, D = 2, 6, 8


def part(
    *shape: int, strides: tuple[int, ...] | None = None, dtype: str = "float16", data: bool = True, storage: int = 0
) -> Part:
    """Dense, where no strides are given."""
    dense = [1]
    for size in reversed(shape[1:]):
        dense.append(dense[-1] * size)
    return Part(storage, 0, shape, tuple(reversed(dense)) if strides is None else strides, dtype, data)


def test_bytes_are_those_of_its_elements_each_stored_once() -> None:
    assert part(BATCH, N, D).bytes == BATCH * N * D * 2
    assert part(BATCH, N, D, dtype="float32").bytes == BATCH * N * D * 4
    assert part(BATCH, N, D, dtype="bool").bytes == BATCH * N * D
    assert part(BATCH, N, D, strides=(0, D, 1)).bytes == N * D * 2
    assert part(BATCH, N, D, strides=(0, 0, 0)).bytes == 2
    assert part(BATCH, 0, D, strides=(0, 0, 1)).bytes == 0
    assert part(strides=()).bytes == 2


@pytest.mark.parametrize(
    ("shape", "strides", "dense", "fastest"),
    [
        ((2, 6, 8), (48, 8, 1), True, 2),
        ((2, 8, 6), (48, 1, 8), False, 1),
        ((2, 6, 4), (48, 8, 1), False, 2),  # a slice
        ((2, 6, 8), (0, 8, 1), False, 2),
        ((1, 6, 8), (999, 8, 1), True, 2),  # of one no stride is ever taken
        ((2, 6, 1), (6, 1, 1), True, 1),
        ((2, 6, 8), (96, 16, 2), False, None),
        ((1, 1), (1, 1), True, None),
    ],
)
def test_layout(shape: tuple[int, ...], strides: tuple[int, ...], dense: bool, fastest: int | None) -> None:
    found = part(*shape, strides=strides)
    assert (found.dense, found.fastest) == (dense, fastest)


def step(kind: str, given: tuple[Part, ...], made: Part, *, operator: str = "mm", macs: int = 0) -> Step:
    return Step(operator, kind, "float16", macs, D, given, (made,))


def test_data_grows_with_the_batch_and_weights_do_not() -> None:
    linear = step("product", (part(BATCH, N, D), part(D, D, data=False)), part(BATCH, N, D), macs=BATCH * N * D * D)
    one, three = linear.work(), linear.work(3)
    assert (one.macs, one.read, one.written) == (BATCH * N * D * D, 2 * (BATCH * N * D + D * D), 2 * BATCH * N * D)
    assert (three.macs, three.read, three.written) == (3 * one.macs, 2 * (3 * BATCH * N * D + D * D), 3 * one.written)
    assert three.bytes == three.read + three.written
    assert (three.kind, three.dtype, three.inner, three.launches) == ("product", "float16", D, 1)


def test_what_follows_from_weights_alone_is_done_once() -> None:
    both = step("product", (part(D, D, data=False),) * 2, part(D, D, data=False), macs=D**3)
    assert not both.data and both.work(3) == both.work()


def test_a_trace_is_rescaled_from_its_batch() -> None:
    add = step("pointwise", (part(BATCH, N, D),), part(BATCH, N, D))
    trace = Trace("source", None, BATCH, "inference", "amp", [add, add], 0)
    assert [work.written for work in trace.works(1)] == [2 * N * D] * 2
    assert list(trace.works()) == list(trace.works(BATCH))


TRANSPOSED = part(BATCH, N, D, strides=(N * D, 1, N))


@pytest.mark.parametrize(
    ("kind", "given", "strided"),
    [
        ("copy", TRANSPOSED, True),
        ("copy", part(BATCH, N, D), False),
        ("pointwise", TRANSPOSED, True),
        ("product", TRANSPOSED, False),  # whose libraries read either way
        ("region", TRANSPOSED, False),
        ("copy", TRANSPOSED._replace(data=False), False),
        ("pointwise", part(N, D), False),  # of another shape: added to each
    ],
)
def test_what_reads_along_another_axis_than_it_writes_is_strided(kind: str, given: Part, strided: bool) -> None:
    found = step(kind, (given,), part(BATCH, N, D))
    assert found.strided is strided and found.work().strided is strided


@pytest.mark.parametrize("tile", [1, 4, 16])
def test_fused_attention_computes_whole_tiles(tile: int) -> None:
    queries, keys = 6, 17
    q, k = part(1, 2, queries, D), part(1, 2, keys, D)
    macs = 2 * 2 * queries * keys * D
    given = step("attention", (q, k, k), q, macs=macs)
    whole = [-(-tokens // tile) * tile for tokens in (queries, keys)]
    assert given.work(tile=tile).macs == pytest.approx(2 * 2 * whole[0] * whole[1] * D)
    assert given.work(tile=tile).bytes == given.work().bytes
    product = step("product", (q, k), q, macs=macs)
    assert product.work(tile=tile).macs == macs


def test_resampling_walks_images_and_channels_one_after_another() -> None:
    image = part(BATCH, 3, 8, 8)
    resampled = step("reduction", (image,), image, operator="upsample_bicubic2d")
    assert resampled.work(2).serial == 2 * BATCH * 3
    assert resampled._replace(operator="upsample_nearest2d").work(2).serial == 0
    assert resampled._replace(kind="region").work(2).serial == 0
