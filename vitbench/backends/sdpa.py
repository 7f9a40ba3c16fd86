"""torch.nn.functional.scaled_dot_product_attention: torch's own choice of kernel, or one by name.

Groups become batch entries, as in the public Swin codes: a mask that differs between windows is expanded
over the batch. sdpa.fold makes groups into heads instead, which leaves such a mask unexpanded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitbench.backend import Backend, Workspace, backends
from vitbench.case import Case, Tensors

if TYPE_CHECKING:
    from torch import Tensor


def additive(bias: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """Bias and mask as the one attn_mask that SDPA takes: (1|B, 1|G, 1|H, N, M), float or bool; None if neither."""
    if mask is None or bias is None:
        return bias if mask is None else mask
    return bias.masked_fill(~mask, float("-inf"))


MOST_ENTRIES = 65_535  # of a CUDA grid beyond its first side


class Sdpa(Backend):
    """Torch chooses the kernel."""

    name = "sdpa"
    description = "scaled_dot_product_attention, torch's own choice of kernel"

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
        merged = additive(bias, mask)
        if merged is not None:
            per_entry = merged.shape[0] > 1 or merged.shape[1] > 1
            merged = merged.expand(b, g, -1, -1, -1).flatten(0, 1) if per_entry else merged[0]
        out = self._attend(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), merged, causal, scale)
        return out.view(b, g, *out.shape[1:])

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
    ) -> Tensor:
        """(B, H, N, d) and a mask broadcastable to (B, H, N, M)."""
        from torch.nn.functional import scaled_dot_product_attention

        return scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)

    def workspace(self, case: Case) -> Workspace | None:
        """On the CPU in float32 torch chooses flash; elsewhere which kernel it chooses is not known beforehand."""
        size = case.tensors()
        if size is None or not _modelled(case):
            return None
        merging, expanded = _masks(case, size)
        return Workspace(max(merging, expanded + _flash_bytes(case, size)), interleaved=True)


class Fold(Sdpa):
    """Groups folded into heads: the mask of all windows is held once, not once an image."""

    name = "sdpa.fold"
    description = "scaled_dot_product_attention with windows folded into heads, so masks are not expanded"

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
        g, h = q.shape[1:3]
        merged = additive(bias, mask)
        if merged is not None:
            merged = merged.expand(-1, g, h, -1, -1).flatten(1, 2)
        out = self._attend(q.flatten(1, 2), k.flatten(1, 2), v.flatten(1, 2), merged, causal, scale)
        return out.view(-1, g, h, *out.shape[2:])

    def workspace(self, case: Case) -> Workspace | None:
        size = case.tensors()
        if size is None or not _modelled(case):
            return None
        groups = case.attentions[0].groups
        several = groups > 1 and case.shape.heads > 1  # else they merge without a copy
        merged = size.merged or (size.bias * groups if several else 0)
        copies = 3 * size.features if several and case.scope != "core" else 0
        return Workspace(max(size.mask + merged, merged + copies + _flash_bytes(case, size)), interleaved=groups == 1)


class Kernel(Sdpa):
    """One kernel of SDPA and no other: what it cannot run raises."""

    backend: str  # member of torch.nn.attention.SDPBackend

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
    ) -> Tensor:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(getattr(SDPBackend, self.backend)):
            return super()._attend(q, k, v, mask, causal, scale)


class Math(Kernel):
    name = "sdpa.math"
    description = "SDPA's math form: its own naive form, scores in memory"
    backend, kernel = "MATH", "math"

    def workspace(self, case: Case) -> Workspace | None:
        """Scaled q and k, scores in and out of a softmax that also looks for fully masked rows (bools)."""
        size = case.tensors()
        if size is None or not _modelled(case):
            return None
        merging, expanded = _masks(case, size)
        copy = size.features if size.strided else 0
        scaled = 2 * size.features + 2 * copy + size.scores
        rows = case.shape.heads * size.features // (case.shape.dim * case.itemsize)
        softmax = size.features + 2 * size.scores + size.scores // case.itemsize + rows + 4
        return Workspace(max(merging, expanded + scaled, expanded + softmax), interleaved=False)


class Flash(Kernel):
    name = "sdpa.flash"
    description = "SDPA's flash kernel: tiles of scores, never the matrix (Dao 2022)"
    backend, kernel = "FLASH_ATTENTION", "flash"

    def unsupported(self, case: Case) -> str | None:
        if any(attention.value_dim not in (None, attention.head_dim) for attention in case.attentions):
            return "SDPA's flash kernel takes values as wide as the keys alone"
        biased = any(attention.bias for attention in case.attentions)
        if case.device == "cpu":
            if biased and case.mode == "training":
                return "SDPA's flash kernel on the CPU has no gradient of a bias"
            return None
        if biased or any(attention.mask for attention in case.attentions):
            return "SDPA's flash kernel on CUDA takes no bias and no mask"
        return _half_only(case, "flash") or _entries(case, "flash") or _head_dim(case, "flash", most=256)


class Efficient(Kernel):
    name = "sdpa.efficient"
    description = "SDPA's memory-efficient kernel (Rabe 2021; xFormers); CUDA only"
    backend, kernel = "EFFICIENT_ATTENTION", "efficient"

    def unsupported(self, case: Case) -> str | None:
        if case.device != "cuda":
            return f"SDPA's efficient kernel exists on CUDA alone, not on {case.device}"
        if case.dtype == "float64":
            return "SDPA's efficient kernel takes float32, bfloat16 and float16, not float64"
        return _entries(case, "efficient") or _head_dim(
            case, "efficient", multiple=16 // case.itemsize
        )  # whole reads of 16 bytes


class Cudnn(Kernel):
    name = "sdpa.cudnn"
    description = "SDPA's cuDNN kernel; CUDA, half precision"
    backend, kernel = "CUDNN_ATTENTION", "cudnn"

    def unsupported(self, case: Case) -> str | None:
        if case.device != "cuda":
            return f"SDPA's cuDNN kernel exists on CUDA alone, not on {case.device}"
        if any(attention.bias for attention in case.attentions) and case.mode == "training":
            return "SDPA's cuDNN kernel has no gradient of a bias"
        if any(attention.keys == 1 for attention in case.attentions):
            return "SDPA's cuDNN kernel takes more than one key"
        most = 128 if case.mode == "training" else 256
        entries = _entries(case, "cuDNN")
        return _half_only(case, "cuDNN") or entries or _head_dim(case, "cuDNN", most=most, multiple=8)


def _modelled(case: Case) -> bool:
    """Half precision packs into buffers that depend on the processor; CUDA's kernels take their own."""
    return case.device == "cpu" and case.dtype == "float32"


def _masks(case: Case, size: Tensors) -> tuple[int, int]:
    """Peak bytes of merging bias and mask and expanding them over the batch, and the bytes that stay.

    One image needs no expanded copy.
    """
    if not size.merged or case.shape.batch == 1:
        return size.mask + size.merged, size.merged
    return max(size.mask, size.scores) + size.merged, size.scores


def _flash_bytes(case: Case, size: Tensors) -> int:
    """Result, log-sum-exp of each row, and the tiles of each thread of SDPA's flash kernel on the CPU, in float32.

    Block sizes as in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    import torch

    n, d = case.attentions[0].queries, case.shape.head_dim
    queries = min(n, 256 if n >= 768 else 64 if n >= 192 else 32)
    keys = min(n, 512)
    tiles = torch.get_num_threads() * 4 * (queries * keys + 2 * queries + queries * d)
    return int(size.features + 4 * size.entries * case.shape.heads * n + tiles)


def _entries(case: Case, kernel: str) -> str | None:
    entries = max(int(attention.batch * attention.groups) for attention in case.attentions)
    if entries > MOST_ENTRIES:
        return f"SDPA's {kernel} kernel on CUDA takes at most {MOST_ENTRIES} images x groups, not {entries}"
    return None


def _half_only(case: Case, kernel: str) -> str | None:
    if case.itemsize == 2:
        return None
    return f"SDPA's {kernel} kernel on CUDA takes float16 and bfloat16, not {case.dtype}"


def _head_dim(case: Case, kernel: str, *, most: int | None = None, multiple: int = 1) -> str | None:
    for d in sorted({width for attention in case.attentions for width in (attention.head_dim, attention.values)}):
        if most is not None and d > most:
            return f"SDPA's {kernel} kernel on CUDA takes a head_dim of at most {most}, not {d}"
        if d % multiple:
            return f"SDPA's {kernel} kernel takes a head_dim that is a multiple of {multiple}, not {d}"
    return None


for _backend in (Sdpa, Fold, Math, Flash, Efficient, Cudnn):
    backends.add(_backend())
