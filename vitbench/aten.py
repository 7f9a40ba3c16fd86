"""Which of torch's operators multiply matrices, as far as their names and tags tell."""

from __future__ import annotations

from typing import Any

import torch

# Copies, reductions, gathers and norms: arithmetic, but no products of matrices. What is not here, not pointwise and
# not a view may hold products; counters name it as uncounted, so that a new operator is never passed over in silence.
NO_PRODUCTS = {
    "all", "amax", "any", "arange", "as_strided_", "avg_pool2d", "avg_pool2d_backward", "cat", "clone",
    "constant_pad_nd", "copy_", "cudnn_batch_norm", "cudnn_batch_norm_backward", "device", "elu_backward",
    "embedding", "embedding_dense_backward", "empty", "empty_like", "empty_strided", "fill_", "full_like",
    "grid_sampler", "grid_sampler_2d", "grid_sampler_2d_backward", "index", "index_add", "index_put", "index_put_",
    "_index_put_impl_", "index_select", "lift_fresh", "linalg_vector_norm", "_local_scalar_dense", "logsumexp",
    "masked_fill_", "max", "max_pool2d", "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "mean",
    "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "native_layer_norm", "native_layer_norm_backward", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "pad", "roll", "_safe_softmax", "scalar_tensor",
    "select_backward", "slice_backward", "softmax", "_softmax", "_softmax_backward_data", "sort", "stack", "sum",
    "_to_copy", "tril", "_unsafe_view", "zero_", "zeros", "zeros_like",
}  # fmt: skip

COPIES = {"clone", "copy_", "_to_copy", "fill_", "zero_"}  # among the operators that torch calls pointwise
COMPUTED = {
    "amax", "avg_pool2d", "cumsum", "cudnn_batch_norm", "linalg_vector_norm", "logsumexp", "_log_softmax", 
    "max_pool2d", "max_pool2d_with_indices", "mean", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "native_group_norm", "native_layer_norm", "_safe_softmax", "softmax",
    "_softmax", "sum", "upsample_bicubic2d", "upsample_bilinear2d", "var_mean",
}  # fmt: skip


def has_no_products(packet: Any) -> bool:
    """packet: an operator of torch.ops with all its overloads."""
    operators = [getattr(packet, overload) for overload in packet.overloads()]
    pointwise = any(torch.Tag.pointwise in operator.tags for operator in operators)
    return pointwise or any(operator.is_view for operator in operators) or packet.__name__ in NO_PRODUCTS


def is_arithmetic(operator: Any) -> bool:
    """Whether its output is computed: pointwise, a norm, a softmax or a reduction; not a copy, not a product."""
    name = operator._overloadpacket.__name__
    return (torch.Tag.pointwise in operator.tags and name not in COPIES) or name in COMPUTED
