"""Bytes that inference holds at its peak above inputs and parameters, in closed form.

From the lifetimes of tensors in the layers as they are written. Exact where the backend's workspace is; leaves out
what libraries take outside torch's allocator.
"""

from __future__ import annotations

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.operator import MLP_RATIO


def peak_bytes(case: Case) -> int | None:
    """None in training, where what the layer holds or the backend's workspace has no closed form, where the case is not
    one plain self-attention, and where a token is alone in its group (then torch takes short cuts of its own).
    """
    size = case.tensors()
    if size is None or case.attentions[0].queries == 1:
        return None
    workspace = backends[case.backend].workspace(case) if case.mode == "inference" else None
    if workspace is None:
        return None
    if case.scope == "core":
        return workspace.peak_bytes
    shape, held = case.shape, case.operator.held(case.shape)
    if held is None:
        return None
    joined = 0 if workspace.interleaved or shape.heads == 1 else size.features
    projecting = size.features + joined + size.features  # result, its heads joined, its projection
    gathered = size.bias if shape.heads == 1 else 2 * size.bias  # the table's rows, then heads first
    attending = size.bias + 3 * size.features + max(workspace.peak_bytes, projecting)  # qkv
    layer = int(held * case.itemsize + max(gathered, attending))
    if case.scope == "layer":
        return layer
    tokens = shape.batch * shape.tokens * shape.dim * case.itemsize
    # norm1's result stays while the layer runs; then residual, norm2's result, hidden before and after GELU
    return int(max(tokens + layer, (2 + 2 * MLP_RATIO) * tokens))
