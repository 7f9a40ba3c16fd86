"""Which of torch's operators multiply matrices, as far as their names and tags tell."""

from __future__ import annotations

from typing import Any

import torch

# Copies, reductions, gathers and norms: arithmetic, but no products of matrices. What is not here, not pointwise and
# not a view may hold products; counters name it as uncounted, so that a new operator is never passed over in silence.
NO_PRODUCTS = {
    "_safe_softmax", "_softmax", "_softmax_backward_data", "softmax", "native_layer_norm", "native_layer_norm_backward",
    "sum", "amax", "any", "all", "max", "logsumexp", "index", "index_put", "index_put_", "_index_put_impl_",
    "index_select", "sort", "embedding", "embedding_dense_backward", "ones", "new_ones", "new_zeros",
    "new_empty_strided", "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones_like", "full_like", "new_full", "scalar_tensor", "arange",
    "copy_", "clone", "_to_copy", "constant_pad_nd", "pad", "roll", "cat", "stack", "select_backward",
    "slice_backward", "fill_", "zero_", "_unsafe_view", "_local_scalar_dense", "lift_fresh",
}  # fmt: skip


def has_no_products(packet: Any) -> bool:
    """packet: an operator of torch.ops with all its overloads."""
    operators = [getattr(packet, overload) for overload in packet.overloads()]
    pointwise = any(torch.Tag.pointwise in operator.tags for operator in operators)
    return pointwise or any(operator.is_view for operator in operators) or packet.__name__ in NO_PRODUCTS
