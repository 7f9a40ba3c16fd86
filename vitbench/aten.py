"""Which of torch's operators multiply matrices, as far as their names and tags tell."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

# Copies, reductions, gathers and norms: arithmetic, but no products of matrices. What is not here, not pointwise and
# not a view may hold products; counters name it as uncounted, so that a new operator is never passed over in silence.
NO_PRODUCTS = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "adaptive_max_pool2d", "all", "amax", "amin", "aminmax",
    "any", "arange", "argmax", "argmin", "argsort", "as_strided", "bernoulli", "bincount", "bucketize", "cat",
    "channel_shuffle", "clone", "col2im", "constant_pad_nd", "copy", "count_nonzero", "cudnn_batch_norm",
    "cudnn_batch_norm_backward", "cummax", "cumsum", "device", "elu_backward", "embedding",
    "embedding_dense_backward", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "fill", "flip",
    "full", "full_like", "_fused_rms_norm", "_fused_rms_norm_backward", "gather", "glu", "glu_backward",
    "grid_sampler", "grid_sampler_2d", "grid_sampler_2d_backward", "hardswish", "hardswish_backward", "im2col",
    "index", "index_add", "index_fill", "index_put", "_index_put_impl", "index_select", "is_same_size", "lift_fresh",
    "_linalg_check_errors", "linalg_vector_norm", "linspace", "_local_scalar_dense", "_log_softmax",
    "_log_softmax_backward_data", "logcumsumexp", "logsumexp", "masked_fill", "masked_select", "max", "mean",
    "median", "min", "mode", "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "native_channel_shuffle", "native_dropout", "native_dropout_backward",
    "native_group_norm", "native_group_norm_backward", "native_layer_norm", "native_layer_norm_backward", "new_empty",
    "new_empty_strided", "new_full", "new_ones", "new_zeros", "nll_loss_backward", "nll_loss_forward", "nonzero",
    "normal", "one_hot", "ones", "ones_like", "pad", "pixel_shuffle", "prod", "rand", "rand_like", "randint", "randn",
    "randn_like", "randperm", "reflection_pad2d", "repeat", "repeat_interleave", "replication_pad2d", "resize",
    "roll", "_safe_softmax", "scalar_tensor", "scatter", "scatter_add", "searchsorted", "select_backward",
    "slice_backward", "softmax", "_softmax", "_softmax_backward_data", "sort", "split_with_sizes_copy", "stack",
    "std", "sum", "sym_size", "_to_copy", "topk", "tril", "tril_indices", "triu", "triu_indices", "unfold_backward",
    "uniform", "_unique2", "unique_consecutive", "unsafe_split", "unsafe_split_with_sizes", "_unsafe_index",
    "_unsafe_view", "_record_function_enter_new", "_record_function_exit", "var",
    "var_mean", "_weight_norm_interface", "zero", "zeros", "zeros_like",
}  # fmt: skip
# How the names of resampling and pooling begin.
RESAMPLING = ("upsample", "_upsample", "max_pool", "avg_pool", "adaptive", "_adaptive", "grid_sampler")

COPIES = {"clone", "copy", "_to_copy", "fill", "zero"}  # among the operators that torch calls pointwise
COMPUTED = {
    "amax", "amin", "cudnn_batch_norm", "cumsum", "hardswish", "linalg_vector_norm", "logsumexp", "_log_softmax",
    "mean", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "native_group_norm", "native_layer_norm", "_fused_rms_norm", "_safe_softmax", "softmax", "_softmax", "sum",
    "var", "var_mean", "std", "glu",
}  # fmt: skip


@cache
def has_no_products(packet: Any) -> bool:
    """packet: an operator of torch.ops with all its overloads."""
    operators = [getattr(packet, overload) for overload in packet.overloads()]
    pointwise = any(torch.Tag.pointwise in operator.tags for operator in operators)
    name = packet.__name__.rstrip("_")  # a trailing one: in place
    named = name in NO_PRODUCTS or name.startswith(RESAMPLING)
    return named or pointwise or any(operator.is_view for operator in operators)


@cache
def is_arithmetic(operator: Any) -> bool:
    """Whether its output is computed: pointwise, a norm, a softmax or a reduction; not a copy, not a product."""
    name = operator._overloadpacket.__name__.rstrip("_")
    computed = name in COMPUTED or name.startswith(RESAMPLING)
    return computed or (torch.Tag.pointwise in operator.tags and name not in COPIES)
