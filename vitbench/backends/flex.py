"""FlexAttention, compiled: bias and mask are read inside the kernel, not merged into one tensor."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from vitbench import compiler
from vitbench.backend import Backend, backends
from vitbench.case import Case

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask


class Flex(Backend):
    name = "fused.flex"
    description = "compiled FlexAttention; bias and mask in its score_mod (Dong et al. 2024)"
    kernel = "compiled"
    compiled = True

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
        b, g = q.shape[:2]
        out: Tensor = self._compiled(
            q.flatten(0, 1),
            k.flatten(0, 1),
            v.flatten(0, 1),
            score_mod=None if bias is None and mask is None else _score_mod(g, bias, mask),
            block_mask=_blocks(q.shape[-2], q.device) if causal else None,
            scale=scale,
        )
        return out.view(b, g, *out.shape[1:])

    @cached_property
    def _compiled(self) -> Any:
        import torch
        from torch.nn.attention.flex_attention import flex_attention

        return torch.compile(flex_attention, dynamic=False, fullgraph=True)

    def unsupported(self, case: Case) -> str | None:
        if case.device == "cpu" and case.mode == "training":
            return "FlexAttention has no backward on the CPU"
        for width in sorted({width for one in case.attentions for width in (one.head_dim, one.values)}):
            if case.device == "cuda" and not 16 <= width <= 256:
                return f"FlexAttention on CUDA takes a head_dim of 16 to 256, not {width}"
        if case.device == "cpu" and case.dtype == "float64":
            return "FlexAttention on the CPU takes float32, bfloat16 and float16, not float64"
        return compiler.lacking(case.device)


@cache
def _blocks(tokens: int, device: torch.device) -> BlockMask:
    """Which blocks of a causal score matrix hold any pair that may attend: the others are not computed."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    def past(entry: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return query >= key

    with torch.inference_mode(False):  # they are kept, and training cannot save what inference made
        return create_block_mask(past, None, None, tokens, tokens, device=str(device))


def _score_mod(groups: int, bias: Tensor | None, mask: Tensor | None) -> Any:
    """bias, mask: broadcastable to (B, G, H, N, M); the kernel's batch index is image x groups + group."""

    def at(tensor: Tensor, entry: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        places = (entry // groups, entry % groups, head, query, key)
        return tensor[tuple(0 * at if size == 1 else at for size, at in zip(tensor.shape, places, strict=True))]

    def score_mod(score: Tensor, entry: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if bias is not None:
            score = score + at(bias, entry, head, query, key)
        if mask is not None:
            score = score.masked_fill(~at(mask, entry, head, query, key), float("-inf"))
        return score

    return score_mod


backends.add(Flex())
