"""What a trace sees of a model on a GPU that is not there: kernels, their kinds, bytes and MACs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from vitbench.devices import card
from vitbench.exact.watch import tally
from vitbench.gpu import DATASHEET, seconds
from vitbench.refusal import Refusal
from vitbench.source import Opened, open_source
from vitbench.step import Step, Trace
from vitbench.trace import trace

B, H, N, D = 2, 3, 10, 12
HEAD_DIM = D // H
X = B * N * D  # elements


class Called(nn.Module):
    """A function of the inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


class Block(nn.Module):
    """A pre-norm block of ViT, attention through SDPA, without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.fc1, self.fc2 = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).reshape(B, N, 3, H, HEAD_DIM).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, N, D)
        x = x + self.proj(mixed)
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


def seen(module: nn.Module | Callable[..., Any], *sizes: tuple[int, ...], dtype: str = "amp") -> list[Step]:
    """Its steps, on inputs of those sizes."""
    made = module if isinstance(module, nn.Module) else Called(module)
    inputs = tuple(torch.zeros(size, device="meta") for size in sizes)
    return list(trace(Opened("source", made.to("meta").eval(), inputs, None), B, dtype=dtype).steps)


def names(steps: list[Step]) -> list[str]:
    return [step.operator for step in steps]


def test_a_block_under_autocast_is_seen_kernel_by_kernel() -> None:
    steps = seen(Block(), (B, N, D))
    assert Counter(step.kind for step in steps) == {
        "reduction": 2,  # norms
        "cast": 2 + 2 * 4,  # what the norms gave, weights and biases of four linear layers
        "product": 4,
        "attention": 1,
        "pointwise": 3,  # gelu, residuals
    }
    assert all(step.dtype == "float16" for step in steps if step.kind in ("product", "attention"))
    assert {step.inner for step in steps if step.kind == "product"} == {D, 4 * D}
    assert all(step.dtype == "float32" for step in steps if step.kind == "reduction")
    (attention,) = (step for step in steps if step.kind == "attention")
    assert attention.macs == 2 * B * H * N * N * HEAD_DIM and attention.inner == HEAD_DIM
    work = attention.work()
    assert (work.read, work.written) == (3 * X * 2, X * 2)  # q, k, v; no scores
    weights = [step for step in steps if step.kind == "cast" and not step.data]
    assert len(weights) == 8 and sum(step.work(5).read for step in weights) == 4 * (12 * D * D + 9 * D)


def test_casts_are_there_under_autocast_alone() -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        steps = seen(Block(), (B, N, D), dtype=dtype)
        assert all(step.kind != "cast" and step.dtype == dtype for step in steps)
    bfloat = seen(Block(), (B, N, D), dtype="amp-bfloat16")
    assert {step.dtype for step in bfloat if step.kind == "product"} == {"bfloat16"}


@pytest.mark.parametrize("leading", [(B,), (B, 5, H)], ids=["3-D", "5-D"])
def test_attention_that_is_not_of_four_dimensions_is_written_out(leading: tuple[int, ...]) -> None:
    size = (*leading, N, HEAD_DIM)
    steps = seen(functional.scaled_dot_product_attention, size, size, size, dtype="float32")
    kinds = Counter(step.kind for step in steps)
    assert kinds["attention"] == 0 and kinds["product"] == 2
    softmax = [step for step in steps if "softmax" in step.operator]
    assert len(softmax) == 1 and softmax[0].work().written == torch.Size(leading).numel() * N * N * 4


def test_a_mask_is_read() -> None:
    size = (B, H, N, HEAD_DIM)

    def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, mask)

    (bare,) = seen(functional.scaled_dot_product_attention, size, size, size, dtype="float16")
    (with_mask,) = seen(masked, size, size, size, (1, 1, N, N), dtype="float16")
    assert with_mask.work().read == bare.work().read + N * N * 2
    assert with_mask.macs == bare.macs


def test_a_norm_copies_what_is_not_dense_before_it_begins() -> None:
    norm = nn.LayerNorm(N)
    assert names(seen(norm, (B, D, N), dtype="float32")) == ["native_layer_norm"]
    copied, normed = seen(nn.Sequential(Called(lambda x: x.mT), norm), (B, N, D), dtype="float32")
    assert (copied.operator, copied.kind, copied.strided) == ("contiguous", "copy", True)
    assert (copied.work().read, copied.work().written) == (X * 4, X * 4)
    assert normed.given[0].dense and normed.work().written == X * 4


IMAGE = (B, 12, 8, 8)


@pytest.mark.parametrize(
    ("convolution", "kind", "inner"),
    [
        (nn.Conv2d(12, 24, 3), "convolution", 12 * 9),
        (nn.Conv2d(12, 24, 1), "convolution", 12),
        (nn.Conv2d(12, 24, 3, groups=3), "grouped", 4 * 9),
        (nn.Conv2d(12, 12, 3, groups=12), "depthwise", 9),
        (nn.Conv2d(12, 24, 3, groups=12), "depthwise", 9),
    ],
)
def test_convolutions_are_told_by_their_groups(convolution: nn.Conv2d, kind: str, inner: int) -> None:
    (step,) = seen(convolution, IMAGE, dtype="float16")
    assert (step.kind, step.inner) == (kind, inner)
    assert step.macs == step.made[0].bytes // 2 * inner


def test_what_is_done_in_place_reads_and_writes_one_tensor() -> None:
    (relu,) = seen(lambda x: x.relu_(), (B, N, D), dtype="float32")
    assert relu.kind == "pointwise" and relu.given[0].storage == relu.made[0].storage
    assert (relu.work().read, relu.work().written) == (X * 4, X * 4)
    (filled,) = seen(lambda x: x.zero_(), (B, N, D), dtype="float32")
    assert (filled.work().read, filled.work().written) == (0, X * 4)
    (copied,) = seen(lambda x, y: x.copy_(y), (B, N, D), (N, D), dtype="float32")
    assert copied.kind == "copy" and (copied.work().read, copied.work().written) == (N * D * 4, X * 4)


def test_views_are_no_kernels_and_copies_are() -> None:
    def arranged(x: Tensor) -> Tensor:
        return torch.cat((x.transpose(1, 2).contiguous().flatten(1), x.reshape(B, -1)[:, ::2]), 1)

    steps = seen(arranged, (B, N, D), dtype="float32")
    assert names(steps) == ["clone", "cat"] and {step.kind for step in steps} == {"copy"}
    assert [step.strided for step in steps] == [True, False]


def test_a_product_of_nothing_takes_no_time_of_arithmetic() -> None:
    steps = seen(lambda x, y: x @ y, (B, 0, D), (D, N), dtype="float16")
    assert all(step.macs == 0 for step in steps)
    assert seconds((step.work() for step in steps), card("rtx4090"), DATASHEET) < 1e-9


@cache
def small(name: str, batch: int) -> Opened:
    """A model of timm's, as its name says but of few layers, on meta tensors."""
    import timm

    kind, image, given = SMALL[name]
    with torch.device("meta"):
        module = timm.create_model(kind, **given).eval()
        return Opened(name, module, (torch.zeros(batch, 3, image, image),), (image, image))


@cache
def small_trace(name: str, batch: int) -> Trace:
    return trace(small(name, batch), batch)


SMALL: dict[str, tuple[str, int, dict[str, Any]]] = {
    "vit": ("vit_tiny_patch16_224", 64, {"depth": 2, "img_size": 64}),
    "swin": (
        "swin_tiny_patch4_window7_224",
        56,
        {"depths": (2, 2), "embed_dim": 24, "num_heads": (2, 4), "img_size": 56},
    ),
    "convnext": ("test_convnext", 64, {}),
    "maxvit": ("maxvit_rmlp_pico_rw_256", 64, {"depths": (1, 1, 1, 1), "img_size": 64}),
    "xcit": ("xcit_nano_12_p16_224", 64, {"depth": 2}),
}


@pytest.mark.parametrize("name", SMALL)
def test_macs_are_those_of_the_exact_count_and_the_module_is_left_as_it_was(name: str) -> None:
    found, opened = small_trace(name, 2), small(name, 2)
    assert found.image == opened.image and found.batch == 2
    assert all(one.is_meta for one in (*opened.module.parameters(), *opened.module.buffers(), *opened.inputs))
    assert not opened.module.training
    assert sum(step.macs for step in found.steps) == tally(opened.module, opened.inputs).macs > 0


@pytest.mark.parametrize("name", SMALL)
def test_a_trace_rescaled_to_another_batch_is_the_trace_of_that_batch(name: str) -> None:
    """But for what a model makes of its weights for each image anew, as XCiT its positions: a trifle."""
    rescaled, traced = list(small_trace(name, 2).works(6)), list(small_trace(name, 6).works())
    assert [(one.operator, one.kind, one.macs) for one in rescaled] == [
        (one.operator, one.kind, one.macs) for one in traced
    ]
    near = 0.01 if name == "xcit" else 0
    assert sum(one.bytes for one in rescaled) == pytest.approx(sum(one.bytes for one in traced), rel=near, abs=0)
    if not near:
        assert [(one.read, one.written) for one in rescaled] == [(one.read, one.written) for one in traced]


def test_macs_of_a_model_of_the_suite_are_those_of_the_exact_count() -> None:
    opened = open_source("vit_ti_16", (64, 64), 1)
    assert sum(step.macs for step in trace(opened, 1).steps) == tally(opened.module, opened.inputs).macs > 0


class Keeping(nn.Module):
    """Gathers in its first call, and keeps what it found."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.kept = nn.Parameter(torch.zeros(9, device="meta")), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kept is None:
            self.kept = self.table[torch.zeros(x.shape[-1], dtype=torch.int64, device=x.device)]
        return x + self.kept


class Giving(Keeping):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), self.kept


class Remembering(nn.Module):
    """Knows its last input again."""

    last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.last is None or self.last[0] is not x:
            self.last = x, x.exp()
        return self.last[1] * 2


class Adding(nn.Module):
    """Adds what the last call gave."""

    kept: Any = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.kept
        self.kept = x.exp()
        return x


def kept(module: nn.Module, batch: int = 2, mode: str = "inference") -> Trace:
    return trace(Opened("source", module, (torch.zeros(batch, 4, device="meta"),), None), batch, mode=mode)


@pytest.mark.parametrize("model", [Keeping, Giving])
@pytest.mark.parametrize(("mode", "gathers"), [("inference", False), ("training", True)])
def test_a_trace_is_of_a_later_call(model: type[nn.Module], mode: str, gathers: bool) -> None:
    found = kept(model(), mode=mode)
    assert any(step.operator == "index" for step in found.steps) is gathers
    assert any(step.operator == "add" for step in found.steps)
    assert any("its first call keeps" in note for note in found.notes) is not gathers


def test_a_later_call_has_other_inputs() -> None:
    assert [step.operator for step in kept(Remembering()).steps] == ["exp", "mul"]


def test_what_an_earlier_call_kept_of_its_data_grows_with_the_batch() -> None:
    small, large = kept(Adding()), kept(Adding(), 6)
    assert list(small.works(6)) == list(large.works()) and small.steps[0].work(3).read == 2 * 6 * 4 * 4


def test_a_model_that_fails_in_its_second_call_is_refused_so() -> None:
    class Once(Keeping):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.kept is not None:
                raise ValueError("once only")
            return super().forward(x)

    with pytest.raises(Refusal, match=r"cannot be traced \(second call\): ValueError: once only"):
        kept(Once())


@pytest.mark.parametrize(("device", "launches"), [("cuda", 32), ("cpu", 1)])
@pytest.mark.parametrize("batch", [1, 4])
def test_an_unfold_is_a_kernel_for_each_image_on_a_card(batch: int, device: str, launches: int) -> None:
    images = torch.zeros(batch, 3, 8, 8, device="meta")
    found = trace(Opened("source", nn.Unfold(2), (images,), None), batch, dtype="float32", device=device)
    (unfold,) = (step for step in found.steps if step.operator == "im2col")
    assert unfold.work(32 // batch).launches == launches


def test_what_cannot_be_traced_is_refused_in_its_own_words() -> None:
    def looks(x: Tensor) -> Tensor:
        raise ValueError("needs a GPU\nand luck")

    with pytest.raises(Refusal, match=r"^source .*cannot be traced.*: ValueError: needs a GPU and luck$"):
        seen(looks, (B, N, D))
    with pytest.raises(Refusal, match=r"^source .*cannot be traced[^\n]*$"):
        seen(lambda x: x if x.sum() > 0 else -x, (B, N, D))


def test_a_module_is_left_as_it_was_where_its_trace_failed() -> None:
    module = nn.Sequential(nn.Linear(D, D), Called(lambda x: x.view(7, 7)))
    with pytest.raises(Refusal, match="cannot be traced"):
        seen(module, (B, N, D))
    assert all(one.is_meta for one in module.parameters())


def test_activations_are_held_at_the_peak_above_weights_and_inputs() -> None:
    found = trace(
        Opened("source", Called(lambda x: x.exp().sin().cos()), (torch.zeros(B, N, D, device="meta"),), None), B
    )
    assert found.activation_bytes == 2 * X * 4
