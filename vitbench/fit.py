"""Does a case fit into the memory that is free?"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.measure.memory import free_bytes
from vitbench.peak import peak_bytes


def too_large(case: Case, *, uncompiled: bool = False) -> str | None:
    """Why the case is not to be started here, with the bytes it needs and the bytes that are free; None if it fits.

    The need is a lower bound: inputs, weights, outputs, and the peak of inference where that has a closed form, or else
    what one attention holds. uncompiled: with the compiler off, as counters run it; scores are then held.
    """
    peak = peak_bytes(replace(case, mode="inference")) or 0  # training holds no less
    backend = backends[case.backend]
    in_memory = backend.kernel in ("products", "math") or (uncompiled and backend.compiled)
    for one in case.attentions:
        scores = 2 * int(one.pairs * one.heads) if in_memory else 0  # in and out of the softmax
        peak = max(peak, (prod(one.q) + prod(one.k) + prod(one.v) + scores) * case.itemsize)
    needed, free = int(case.cost().moved_elements * case.itemsize + peak), free_bytes(case.device)
    return f"needs {needed} bytes on {case.device}, {free} are free; not started" if needed > free else None
