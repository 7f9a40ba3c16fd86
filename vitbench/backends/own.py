"""The operator's own program: what has no softmax attention (linear attention, convolution) runs as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitbench.backend import Backend, backends

if TYPE_CHECKING:
    from torch import Tensor


class Own(Backend):
    name = "own"
    description = "the operator's own program; it has no softmax attention to hand over"
    attends = False

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
        raise NotImplementedError("an operator without softmax attention handed some to its backend")


backends.add(Own())
