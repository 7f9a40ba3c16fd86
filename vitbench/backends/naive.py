"""Scores, softmax, mix: the readable form, which holds the whole score matrix; eager and compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitbench import compiler
from vitbench.backend import Backend, Workspace, backends
from vitbench.case import Case

if TYPE_CHECKING:
    from torch import Tensor, nn


class Naive(Backend):
    name = "naive"
    description = "matmul, softmax, matmul; the score matrix is held in memory"
    kernel = "products"

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
        import torch

        attention = (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.transpose(-2, -1)
        if bias is not None:
            attention = attention + bias
        if causal:
            mask = attention.new_ones(attention.shape[-2:], dtype=torch.bool).tril()
        if mask is not None:
            attention = attention.masked_fill(~mask, float("-inf"))
        attention = attention.softmax(dim=-1)
        mixed: Tensor = attention @ v
        return mixed

    def workspace(self, case: Case) -> Workspace | None:
        """Two score matrices at the softmax, or the scaled q, copies and scores around the products.

        Batched products copy q, k and v where batch and heads of these views cannot be merged.
        In half precision on the CPU products take scratch space that depends on the processor. On CUDA this leaves out
        what the matrix library takes.
        """
        if case.device == "cpu" and case.itemsize == 2:
            return None
        if (size := case.tensors()) is None:
            return None
        copy = size.features if size.strided else 0
        scaled = size.features + 2 * copy + size.scores
        softmax = 2 * size.scores + size.mask  # the mask is inverted in memory
        mixed = size.scores + copy + size.features
        return Workspace(max(scaled, softmax, mixed), interleaved=False)


class NaiveCompiled(Naive):
    name = "naive.compiled"
    description = "the naive form, its whole module under torch.compile, which may match it to SDPA"
    kernel = "compiled"
    compiled = True

    def unsupported(self, case: Case) -> str | None:
        return compiler.lacking(case.device)

    def wrap(self, module: nn.Module) -> nn.Module:
        import torch

        return torch.compile(module, dynamic=False, fullgraph=True)  # type: ignore[return-value]

    def workspace(self, case: Case) -> Workspace | None:
        return None  # the compiler's choice


backends.add(Naive())
backends.add(NaiveCompiled())
