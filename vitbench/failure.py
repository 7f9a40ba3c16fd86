"""How a case ends without a time, and what torch says when it cannot run one."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# What SDPA, cuDNN and Triton say where a kernel cannot run a case.
NO_KERNEL = ("No available kernel", "No viable backend", "No valid execution plans", "out of resource")
# What the CPU's allocator, CUDA and its libraries say where torch's own allocator is not the one that lacks memory.
NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "_STATUS_ALLOC_FAILED")


class Ended(Exception):
    """A case that ends without a time: its state, and why in one sentence. wanted_bytes: the allocation that failed."""

    def __init__(self, state: str, reason: str, wanted_bytes: int | None = None) -> None:
        super().__init__(reason)
        self.state, self.reason, self.wanted_bytes = state, reason, wanted_bytes


@contextmanager
def torch_errors() -> Iterator[None]:
    """Turns torch's errors for lack of memory or of a kernel into the state they mean; others become crashed.

    Torch says why a kernel was not used in warnings; they join the reason.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except Ended:
            raise
        except (Exception, SystemExit) as error:
            text = (str(error).strip().splitlines() or [""])[0]
            if isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in NO_MEMORY):
                raise Ended("out_of_memory", text, wanted_bytes(text)) from error
            if any(words in str(error) for words in NO_KERNEL):
                why = "; ".join([text, *(str(warning.message).splitlines()[0] for warning in said)])
                raise Ended("unsupported", f"torch has no such kernel for this case: {why}") from error
            traceback.print_exc()  # into worker.log
            raise Ended("crashed", f"{type(error).__name__}: {text}") from error


def wanted_bytes(said: str) -> int | None:
    """Bytes of the allocation that failed, in torch's words: exact on the CPU, two decimals of a unit on CUDA."""
    if found := re.search(r"tried to allocate (\d+) bytes", said):
        return int(found[1])
    if found := re.search(r"Tried to allocate ([\d.]+) ([KMGT]?i?)B", said):
        return round(float(found[1]) * float(1024 ** " KMGT".index(found[2][:1] or " ")))
    return None
