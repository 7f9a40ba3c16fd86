"""What this machine attains: multiply-accumulates and bytes a second, the best that was seen.

`python -m vitbench.measure.peaks cpu|cuda DTYPE...` prints one JSON object. Both figures are attainable rates, seen in
the fastest of repeated calls within a time budget, and so lower bounds of the hardware's peaks: a datasheet says more.
float32 products run as torch's settings have them here (TF32 where it is allowed).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from vitbench.case import ITEMSIZE
from vitbench.measure.clock import preparation, timer
from vitbench.measure.environment import usable_device
from vitbench.measure.memory import free_bytes
from vitbench.refusal import Refusal

SECONDS = 1.0  # of samples for each figure; setting up comes on top
REPETITIONS = 3  # of every size tried, however long one takes
SIZES = {"cpu": (512, 1024, 2048, 4096), "cuda": (4096, 8192)}  # n of the products, n x n by n x n
COPIED_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}  # of each of the two buffers, more where the caches are large
CACHES = 4  # each buffer is at least so many times the last-level cache
USUAL_CACHE = 64 << 20  # bytes, where the system does not say
SHARE_OF_FREE = 8  # each buffer takes at most one part in so many of the free memory
BLOCK = 1 << 20  # normal numbers, drawn once and repeated to fill a buffer
CPUS = Path("/sys/devices/system/cpu")
# How torch and cuBLAS say that a device has no product of a dtype, in lower case.
MISSING = ("not implemented", "not_supported", "arch_mismatch")


@torch.inference_mode()
def peaks(device: str, dtypes: Sequence[str]) -> dict[str, Any]:
    """macs_per_second by dtype and bytes_per_second, attainable; seconds: wall time that this took.

    A dtype whose product the device does not have is None, as is a bandwidth for which too little memory is free.
    Raises Refusal for a dtype that torch does not know.
    """
    start = time.perf_counter()
    known = {name: _dtype(name) for name in dtypes}
    return {
        "device": device,
        "macs_per_second": {name: _product_rate(device, dtype) for name, dtype in known.items()},
        "bytes_per_second": _copy_rate(device),
        "seconds": time.perf_counter() - start,
    }


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Refusal(f"unknown dtype {name!r}; expected one of torch's: {', '.join(ITEMSIZE)}")
    return dtype


def _product_rate(device: str, dtype: torch.dtype) -> float | None:
    """MACs a second of the best square product, n^3 MACs; None where the device has none of this dtype.

    A size after the first is tried only where its repetitions will take no longer than the whole budget.
    """
    best, sizes = 0.0, SIZES[device]
    for n in sizes:
        if best and REPETITIONS * n**3 / best > SECONDS:
            break
        random = torch.Generator(device).manual_seed(0)
        a, b = (torch.randn(n, n, generator=random, device=device).to(dtype) for _ in range(2))
        try:
            fastest = _fastest(device, _product(a, b), SECONDS / len(sizes))
        except RuntimeError as error:
            if not any(word in str(error).lower() for word in MISSING):
                raise
            return None
        best = max(best, n**3 / fastest)
    return best


def _product(a: torch.Tensor, b: torch.Tensor) -> Callable[[], Any]:
    result = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=result)


def _copy_rate(device: str) -> float | None:
    """Bytes read plus bytes written a second by a copy from memory to memory; None where too little memory is free.

    A processor that reads a line before it overwrites it moves half as much again, which is not counted.
    """
    size = _buffer_bytes(device)
    if size is None:
        return None
    random = torch.Generator(device).manual_seed(0)
    source = torch.randn(BLOCK, generator=random, device=device).repeat(max(1, size // (4 * BLOCK)))
    copy = torch.empty_like(source)
    return 2 * source.nbytes / _fastest(device, lambda: copy.copy_(source), SECONDS)


def _buffer_bytes(device: str) -> int | None:
    """Bytes of each buffer to copy: far more than the caches hold, a small part of what is free, or None."""
    least = CACHES * _cache_bytes(device)
    size = min(max(COPIED_BYTES[device], least), free_bytes(device) // SHARE_OF_FREE)
    return size if size >= least else None


def _cache_bytes(device: str) -> int:
    """Bytes of the last-level caches, all of them together: a CPU may have one for each group of cores."""
    if device == "cuda":
        return int(torch.cuda.get_device_properties().L2_cache_size)
    levels: dict[int, dict[str, int]] = {}
    for known in CPUS.glob("cpu[0-9]*/cache/index*/size"):  # some processors keep their sizes to themselves
        level, cpus, size = ((known.parent / name).read_text().strip() for name in ("level", "shared_cpu_list", "size"))
        levels.setdefault(int(level), {})[cpus] = int(size.removesuffix("K")) * 1024  # Linux writes them in KiB
    return sum(levels[max(levels)].values()) if levels else USUAL_CACHE


def _fastest(device: str, call: Callable[[], Any], budget: float) -> float:
    """Seconds of the fastest call among at least REPETITIONS, and as many more as fill a budget in seconds."""
    call()  # libraries choose and load their kernels
    prepare, now = preparation(device, call, "warm"), timer(device)
    times: list[float] = []
    while len(times) < REPETITIONS or sum(times) < budget:
        prepare()
        start = now()
        call()
        times.append(now() - start)
    return min(times)


def main(words: list[str]) -> int:
    try:
        if len(words) < 2:
            raise Refusal("expected a device and one dtype or more, such as: cpu float32 bfloat16")
        print(json.dumps(peaks(usable_device(words[0]), words[1:])))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
