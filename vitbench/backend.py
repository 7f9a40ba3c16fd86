"""The contract of a backend: how softmax(scale q k^T + bias, under mask) v is executed.

Torch is imported where attention runs, not here, so that backends can be listed and refused without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from vitbench.case import Case
from vitbench.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn


class Workspace(NamedTuple):
    """What attend holds above q, k, v, bias and mask.

    peak_bytes: at its peak, its result included. interleaved: the result lies in memory as (B, G, N, H, d), so that
    heads can be joined without a copy.
    """

    peak_bytes: int
    interleaved: bool


class Backend(ABC):
    """One instance a member: family naive, sdpa, fused or own, then a dot and the member's own name."""

    name: str
    description: str  # what executes, in one line
    kernel: str | None = None  # that it asks for, as vitbench/attribution.py names kernels; None: torch chooses
    compiled: bool = False  # counters, which see nothing of compiled code, turn the compiler off
    attends: bool = True  # executes softmax attention; False: runs what has none, and is not asked to

    @abstractmethod
    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        bias: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """q: (B, G, H, N, d); k: (B, G, H, M, d); v: (B, G, H, M, e); G groups (windows; 1 where global), H heads.

        bias: additive, broadcastable to (B, G, H, N, M). mask: bool, likewise, True = may attend.
        causal: query i sees keys 0 to i; N = M then, and there is neither bias nor mask.
        scale: of the scores; 1 / sqrt(d) if None. Returns (B, G, H, N, e).
        """

    def unsupported(self, case: Case) -> str | None:
        """Why the case cannot run on this backend here, in one sentence; None if it can. Never a silent fallback."""
        return None

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module as it is run: compiled, captured; by default as it is."""
        return module

    def workspace(self, case: Case) -> Workspace | None:
        """What attend holds in inference; None where no closed form is known."""
        return None


def refused(case: Case) -> str | None:
    """Why the case cannot run on its backend here, in one sentence; None if it can."""
    backend = backends[case.backend]
    if backend.attends != bool(case.attentions):
        fitting = ", ".join(other.name for other in backends if other.attends != backend.attends)
        has = (
            "softmax attention, which a backend must execute" if case.attentions else "no softmax attention to execute"
        )
        return f"{case.operator} has {has}; expected one of {fitting}, not {case.backend}"
    if case.mode == "training" and case.dtype in case.operator.rough:
        return f"gradients of {case.operator} in {case.dtype} cannot be told from rounding errors, so not be checked"
    return case.operator.lacking() or backend.unsupported(case)


backends: Registry[Backend] = Registry("backend", "vitbench.backends")
