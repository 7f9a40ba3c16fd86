"""Bytes that an operator on the CPU takes from torch's allocator within itself and gives back, beyond what it gives.

Attention's tiles have a closed form. What oneDNN takes for a convolution (weights, images and sums in layouts of its
own) depends on processor, threads and version: each is run alone, and its allocations are read. NOT in it: what
half precision packs, and what libraries take outside torch's allocator.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from vitbench.measure.memory import allocations

aten = torch.ops.aten
CONVOLVED, DIFFERENTIATED = aten.convolution.default, aten.convolution_backward.default
MOST = 2**23  # elements of images that a convolution is run on; beyond, what it takes grows along a line


class _Like(NamedTuple):
    """What stands for a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def cut(self, batch: int, rows: int) -> _Like:
        """So many images of so many rows, dense, dimensions in the same order."""
        shape = (batch, self.shape[1], rows, *self.shape[3:])
        strides, step = [0] * len(shape), 1
        for n in sorted(range(len(shape)), key=lambda n: (self.stride[n], -n)):
            strides[n] = step
            step *= shape[n]
        return _Like(shape, tuple(strides), self.dtype)


Told = tuple[Any, ...]  # arguments of an operator, tensors as _Like and lists as tuples


def workspace(func: Any, args: Any, kwargs: Any) -> tuple[int, int]:
    """What does not grow with the batch, and what does: of a convolution, as it takes more on twice the images.

    func: an overload of torch.ops. args, kwargs: its own, of which the tensors may be fake.
    """
    if func in TILES:
        return TILES[func](args), 0
    return _convolution(func, args) if func in (CONVOLVED, DIFFERENTIATED) else (0, 0)


def _convolution(func: Any, args: Any) -> tuple[int, int]:
    told, threads = tuple(map(_frozen, args)), torch.get_num_threads()
    image = told[0 if func is CONVOLVED else 1].shape
    parts, transposed = 1, told[6 if func is CONVOLVED else 7]
    while args[0].numel() + args[1].numel() > MOST * parts:
        parts *= 2
    if transposed or len(image) != 4:
        return 0, _run(func, told, threads)
    if parts == 1:
        taken = _run(func, told, threads)
        return _parted(taken, _run(func, _cut(func, told, 2 * image[0], image[2]), threads) - taken)
    sizes = []
    for part in (parts, 2 * parts):
        batch = max(1, image[0] // part)
        rows = min(image[2], max(64, image[2] * image[0] // (batch * part)))
        sizes.append((batch * rows, _run(func, _cut(func, told, batch, rows), threads)))
    (more, taken), (less, before) = sizes
    slope = (taken - before) / (more - less) if more > less else 0
    return _parted(taken + int(slope * (image[0] * image[2] - more)), int(slope * image[0] * image[2]))


def _parted(taken: int, growing: int) -> tuple[int, int]:
    growing = max(0, min(growing, taken))
    return taken - growing, growing


def _frozen(one: Any) -> Any:
    if isinstance(one, Tensor):
        return _Like(tuple(one.shape), one.stride(), one.dtype)
    return tuple(one) if isinstance(one, list) else one


def _cut(func: Any, told: Told, batch: int, rows: int) -> Told:
    """On so many images of so many rows."""
    if func is CONVOLVED:
        return (told[0].cut(batch, rows), *told[1:])
    grad, x, weight, _, stride, padding, dilation = told[:7]
    left = (rows + 2 * padding[0] - dilation[0] * (weight.shape[2] - 1) - 1) // stride[0] + 1
    return (grad.cut(batch, left), x.cut(batch, rows), *told[2:])


@cache
def _run(func: Any, told: Told, threads: int) -> int:
    """threads: that torch uses, on which it depends."""
    with _disable_current_modes(), torch.no_grad():
        args = [
            torch.empty_strided(one.shape, one.stride, dtype=one.dtype).zero_() if isinstance(one, _Like) else one
            for one in told
        ]
        func(*args)  # once before: it plans
        results: list[Any] = []
        taken = allocations(lambda: results.append(func(*args)))
    storages = [one.untyped_storage() for one in torch.utils._pytree.tree_leaves(results) if one is not None]
    given = {storage.data_ptr(): int(storage.nbytes()) for storage in storages}
    return max(accumulate(taken), default=0) - sum(given.values())


def _tiles(q: Tensor, k: Tensor) -> tuple[int, int]:
    """Queries and keys of a tile. As in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp."""
    n = q.shape[-2]
    return min(n, 256 if n >= 768 else 64 if n >= 192 else 32), min(k.shape[-2], 512)


def _forward(args: Any) -> int:
    """Each thread: scores, their sums and largest, and the result of a tile."""
    queries, keys = _tiles(args[0], args[1])
    return torch.get_num_threads() * 4 * (queries * keys + 2 * queries + queries * int(args[2].shape[-1]))


def _backward(args: Any) -> int:
    """Each thread: weights of a tile and their gradient; and sums of its queries."""
    queries, keys = _tiles(args[1], args[2])
    return torch.get_num_threads() * 8 * queries * keys + 4 * queries


TILES = {
    aten._scaled_dot_product_flash_attention_for_cpu.default: _forward,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _backward,
}
