"""Bytes that inference holds at its peak above inputs and parameters, in closed form.

From the lifetimes of tensors in the layers as they are written. Exact where the backend's workspace is; leaves out
what libraries take outside torch's allocator.
"""

from __future__ import annotations

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.operator import MLP_RATIO


def peak_bytes(case: Case) -> int | None:
    """None in training, where what the layer holds or the backend's workspace has no closed form, and where a token is
    alone in its group (then torch takes short cuts of its own).
    """
    if case.operator.groups(case.shape).tokens == 1:
        return None
    workspace = backends[case.backend].workspace(case) if case.mode == "inference" else None
    if workspace is None:
        return None
    if case.scope == "core":
        return workspace.peak_bytes
    size, shape, held = case.tensors(), case.shape, case.operator.held(case.shape)
    if held is None:
        return None
    joined = 0 if workspace.interleaved or shape.heads == 1 else size.features
    projecting = size.features + joined + size.features  # result, its heads joined, its projection
    base = 3 * size.features + held * case.itemsize  # qkv
    gathered = size.bias if shape.heads == 1 else 2 * size.bias  # the table's rows, then heads first
    layer = int(base + max(gathered, size.bias + workspace.peak_bytes, projecting))
    if case.scope == "layer":
        return layer
    tokens = shape.batch * shape.tokens * shape.dim * case.itemsize
    # norm1's result stays while the layer runs; then residual, norm2's result, hidden before and after GELU
    return int(max(tokens + layer, (2 + 2 * MLP_RATIO) * tokens))
