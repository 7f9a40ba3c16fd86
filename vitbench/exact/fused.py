"""Fused attention as one operator on meta tensors, for `watch`: what any kernel of it must do and hold.

Scores and mix are counted as computed, every query with every key; the scores are held nowhere. In the backward they
are not counted as computed again, though most kernels do so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import prod
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._higher_order_ops.flex_attention import flex_attention as flex
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention import flex_attention as flex_module
from torch.overrides import TorchFunctionMode

from vitbench.exact.lifetimes import Lifetimes

SDPA = functional.scaled_dot_product_attention
OPERATOR = "scaled_dot_product_attention"
DIRECT = {  # kernels that a program calls by themselves: whether the heads come after the tokens
    torch.ops.aten._flash_attention_forward: True,
    torch.ops.aten._efficient_attention_forward: True,
    torch.ops.aten._scaled_dot_product_flash_attention: False,
    torch.ops.aten._scaled_dot_product_efficient_attention: False,
    torch.ops.aten._scaled_dot_product_cudnn_attention: False,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: False,
}
FLEX = (
    "FlexAttention: what score_mod and mask_mod compute is not counted, and blocks that its mask skips are counted as "
    "computed"
)


class Watcher(Protocol):
    """What watches a program, and is told of its fused attention."""

    @property
    def lifetimes(self) -> Lifetimes: ...

    @property
    def notes(self) -> list[str]: ...

    def pause(self) -> AbstractContextManager[None]:
        """Inside, operators run unseen."""

    def calling(self, function: str) -> AbstractContextManager[None]:
        """Inside, the program is in that function of torch's."""

    def fuses(self, query: Tensor) -> bool:
        """Whether the attention of these queries is to be seen as one operator."""

    def attended(self, given: tuple[Tensor | None, ...], out: Tensor, pairs: int) -> Any:
        """Scores and mix of q, k, v (..., N, d) and what is added to the scores. pairs: of all heads."""

    def attended_back(
        self, products: Any, times: tuple[int, int], given: tuple[Tensor | None, ...], made: tuple[Tensor | None, ...]
    ) -> None:
        """Gradients of what attended gave: so many of scores and of mix. given: q, k, v, added, result, sums, the
        result's gradient."""


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, watch: Watcher, run: Callable[..., Tensor], *given: Tensor | None) -> tuple[Tensor, Tensor]:
        """given: q (..., N, d), k (..., M, d), v (..., M, d_v), what is added to the scores or masks them, or None."""
        q, k, v, _ = given
        assert q is not None and k is not None and v is not None
        with watch.pause():
            out = run(*given)
            if out.ndim == 4:  # kernels give the heads of a token side by side
                out = out.transpose(1, 2).contiguous().transpose(1, 2)
            sums = q.new_empty(out.shape[:-1], dtype=torch.float32)  # of each query's softmax
            watch.lifetimes.see((out, sums))
            products = watch.attended(given, out, prod(out.shape[:-1]) * k.shape[-2])
        ctx.watch, ctx.products = watch, products
        ctx.save_for_backward(*given, out, sums)
        ctx.mark_non_differentiable(sums)
        ctx.set_materialize_grads(False)  # there is none of the sums
        return out, sums

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[2:]
        saved = ctx.saved_tensors
        made = tuple(torch.empty_like(x) if need else None for x, need in zip(saved, needed, strict=False))
        times = needed[0] + needed[1], needed[2] + (needed[0] or needed[1] or needed[3])
        ctx.watch.attended_back(ctx.products, times, (*saved, gradient), made)
        return (None, None, *made)


@contextmanager
def intercepted(watch: Watcher) -> Iterator[None]:
    """Inside, fused attention is seen as one operator, and the functions of torch's that are called are known."""
    validate = flex_module._validate_device

    functions = _Functions(watch)

    def attend(*args: Any, **kwargs: Any) -> Any:
        return functions.__torch_function__(SDPA, (), args, kwargs)

    functional.scaled_dot_product_attention = attend  # torch's own Python, nn.MultiheadAttention's, calls it by this
    flex_module._validate_device = lambda *_: None  # it knows no meta tensors
    try:
        with functions:
            yield
    finally:
        functional.scaled_dot_product_attention = SDPA
        flex_module._validate_device = validate


class _Functions(TorchFunctionMode):
    """Knows the outermost function of torch's that is running."""

    def __init__(self, watch: Watcher) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with self.watch.calling(getattr(func, "__name__", str(func))):
            own: dict[Any, Callable[..., Any]] = {SDPA: _sdpa, flex: _flex}
            result = own[func](self.watch, *args, **kwargs) if func in own else func(*args, **kwargs)
        return result


def _sdpa(
    watch: Watcher,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    def run(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return SDPA(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    def told(*given: Tensor | None) -> Tensor:
        """By its shapes alone: a fused kernel that the program asks for cannot be chosen without its device."""
        with sdpa_kernel(SDPBackend.MATH):
            return run(*given)  # type: ignore[arg-type]

    if not watch.fuses(query):
        return run(query, key, value, attn_mask)
    given = (None if one is None else _as_autocast(one) for one in (query, key, value, attn_mask))
    out: Tensor = _Attention.apply(watch, told, *given)[0]
    return out


def _as_autocast(tensor: Tensor) -> Tensor:
    """As SDPA takes it under the autocast at hand; meta tensors know none."""
    device = tensor.device.type
    if device == "meta" or not torch.is_autocast_enabled(device) or tensor.dtype != torch.float32:
        return tensor
    return tensor.to(torch.get_autocast_dtype(device))


def _flex(watch: Watcher, q: Tensor, k: Tensor, v: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and mix alone."""

    def run(q: Tensor, k: Tensor, v: Tensor, _: None) -> Tensor:
        return SDPA(q, k, v, enable_gqa=q.shape[1] != k.shape[1])

    if FLEX not in watch.notes:
        watch.notes.append(FLEX)
    out, sums = _Attention.apply(watch, run, q, k, v, None)
    return out, sums, sums
