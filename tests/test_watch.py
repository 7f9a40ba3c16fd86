"""The exact count of a module: every way of hiding products is counted right, or named as not counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from vitbench.case import Case
from vitbench.exact.tally import Tally
from vitbench.exact.watch import tally
from vitbench.operators.global_ import Global
from vitbench.program import build
from vitbench.shape import Shape

N, D, H = 197, 768, 12
CORE = 2 * N * N * D  # scores and mix: 59,610,624
LAYER = 4 * N * D * D + CORE
TOKENS = (1, N, D)


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*self.parts, *inputs)


def meta(*sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.empty(size, device="meta") for size in sizes)


def on_meta(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.device("meta"):
        return make()


QKV = ((1, H, N, D // H),) * 3
HIDDEN = {  # what hides the products of 197 tokens of 768 features, 12 heads: module, inputs, MACs
    "scaled_dot_product_attention": (lambda: Called(scaled_dot_product_attention), QKV, CORE),
    "through torch.nn.functional": (
        lambda: Called(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v)),
        QKV,
        CORE,
    ),
    "causal, as most kernels compute it": (
        lambda: Called(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True)),
        QKV,
        CORE,
    ),
    "products written out": (lambda: Called(lambda q, k, v: (q @ k.mT).softmax(-1) @ v), QKV, CORE),
    "einsum": (
        lambda: Called(
            lambda q, k, v: torch.einsum("bhnm,bhmd->bhnd", torch.einsum("bhnd,bhmd->bhnm", q, k).softmax(-1), v)
        ),
        QKV,
        CORE,
    ),
    "flash, heads after tokens": (
        lambda: Called(
            lambda q, k, v: torch.ops.aten._flash_attention_forward(q, k, v, None, None, N, N, 0.0, False, False)[0]
        ),
        ((1, N, H, D // H),) * 3,
        CORE,
    ),
    "efficient, heads after tokens": (
        lambda: Called(
            lambda q, k, v: torch.ops.aten._efficient_attention_forward(q, k, v, None, None, None, N, N, 0.0, 0)[0]
        ),
        ((1, N, H, D // H),) * 3,
        CORE,
    ),
    "FlexAttention": (lambda: Called(flex_attention), QKV, CORE),
    "FlexAttention compiled": (lambda: Called(torch.compile(flex_attention)), QKV, CORE),
    "a compiled module": (lambda: torch.compile(nn.Linear(D, D)), (TOKENS,), N * D * D),
    "nn.MultiheadAttention": (
        lambda: Called(lambda layer, x: layer(x, x, x, need_weights=False)[0], attention()),
        (TOKENS,),
        LAYER,
    ),
    "nn.MultiheadAttention with its weights": (
        lambda: Called(lambda layer, x: layer(x, x, x)[0], attention()),
        (TOKENS,),
        LAYER,
    ),
    "nn.TransformerEncoderLayer": (lambda: encoder(), (TOKENS,), 1_453_954_560),
    "nn.TransformerEncoder": (lambda: nn.TransformerEncoder(encoder(), 2), (TOKENS,), 2 * 1_453_954_560),
    "a module used twice": (
        lambda: Called(lambda layer, x: layer(layer(x)), nn.Linear(D, D)),
        (TOKENS,),
        2 * N * D * D,
    ),
    "inference mode within": (
        lambda: Called(torch.inference_mode()(lambda layer, x: layer(x)), nn.Linear(D, D)),
        (TOKENS,),
        N * D * D,
    ),
    "a matrix times a vector": (lambda: Called(lambda x: x[0] @ x[0, 0]), (TOKENS,), N * D),
}


FORWARD_ALONE = ("inference", "heads after", "vector")  # the last: its gradient by the matrix is no sum of products


def attention() -> nn.Module:
    return nn.MultiheadAttention(D, H, batch_first=True)


def encoder() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(D, H, 4 * D, batch_first=True, activation="gelu")


def test_the_known_figures_are_these() -> None:
    assert (CORE, LAYER) == (59_610_624, 524_391_936)


@pytest.mark.parametrize("what", HIDDEN)
def test_what_hides_its_products_is_counted(what: str) -> None:
    make, sizes, expected = HIDDEN[what]
    found = tally(on_meta(make).eval(), meta(*sizes))
    assert (found.macs, found.uncounted) == (expected, {})


@pytest.mark.parametrize("what", [what for what in HIDDEN if not any(map(what.__contains__, FORWARD_ALONE))])
def test_its_gradients_are_counted_too(what: str) -> None:
    """Of weights and of inputs that come from a layer before: twice the forward."""
    make, sizes, expected = HIDDEN[what]
    module, inputs = on_meta(make), meta(*sizes)
    before = torch.nn.ParameterList([torch.nn.Parameter(x) for x in inputs])  # a weight for each input
    found = tally(Called(lambda weights, inner: inner(*weights), before, module), (), training=True)
    assert found.macs == 3 * expected


def test_scores_are_told_from_mix_fused_and_written_out() -> None:
    for what in ("scaled_dot_product_attention", "products written out", "einsum", "FlexAttention"):
        make, sizes, _ = HIDDEN[what]
        found = tally(on_meta(make), meta(*sizes))
        assert found.by("term") == {"scores": CORE // 2, "mix": CORE // 2}
        assert found.score_elements == H * N * N
        assert found.attentions == [(N, N)]


def test_flex_attention_says_what_it_leaves_out() -> None:
    found = tally(on_meta(HIDDEN["FlexAttention"][0]), meta(*QKV))
    assert len(found.notes) == 1 and "score_mod" in found.notes[0]


def test_heads_mixed_before_and_after_the_softmax_stay_scores() -> None:
    """Talking heads (Touvron 2021, CaiT)."""

    def talking(before: nn.Module, after: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = before((q @ k.mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        weights = after(scores.softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return weights @ v

    found = tally(on_meta(lambda: Called(talking, nn.Linear(H, H), nn.Linear(H, H))), meta(*QKV))
    assert found.by("term") == {"scores": CORE // 2, "mix": CORE // 2, "linear": 2 * N * N * H * H}


def test_products_without_a_softmax_between_them_are_pairs() -> None:
    found = tally(on_meta(lambda: Called(lambda q, k, v: q @ (k.mT @ v))), meta(*QKV))
    assert found.by("term") == {"pairs": 2 * N * D * D // H}


def test_products_of_weights_alone_are_told_apart() -> None:
    module = on_meta(lambda: Called(lambda inner, x: x @ (inner.weight @ inner.weight), nn.Linear(D, D)))
    assert tally(module, meta(TOKENS)).by("term") == {"weights": D**3, "linear": N * D * D}


@pytest.mark.parametrize(("reentrant", "again"), [(True, 2), (False, 1)])
def test_what_checkpointing_computes_again_is_counted_and_told_apart(reentrant: bool, again: int) -> None:
    """Torch's newer way stops before the last layer, whose result the backward does not need."""

    def run(first: nn.Module, others: nn.Module, x: Tensor) -> Any:
        return checkpoint(others, first(x), use_reentrant=reentrant)

    def layer() -> nn.Module:
        return nn.Linear(D, D)

    module = on_meta(lambda: Called(run, layer(), nn.Sequential(layer(), nn.GELU(), layer())))
    once = N * D * D
    found = tally(module, meta(TOKENS), training=True)
    assert found.by("place") == {"backward": 5 * once, "forward": 3 * once, "recomputed": again * once}
    assert set(found.by("module")) == {"parts.0", "parts.1.0", "parts.1.2"}


def test_a_module_is_named_for_its_products_in_the_backward_as_well() -> None:
    found = tally(on_meta(lambda: nn.Sequential(nn.Linear(D, D), nn.Linear(D, 2 * D))), meta(TOKENS), training=True)
    assert found.by("module") == {"1": 6 * N * D * D, "0": 2 * N * D * D}  # no gradient of the input


def test_a_convolution_in_groups_has_the_gradients_of_its_own_size() -> None:
    with torch.device("meta"):
        module = nn.Sequential(nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8))
    found = tally(module, meta((1, 8, 14, 14)), training=True)
    assert found.macs == 2 * 196 * 64 + 3 * 196 * 72


def test_an_operator_without_a_formula_is_named_with_its_module() -> None:
    module = on_meta(lambda: nn.Sequential(nn.Linear(D, N), Called(torch.linalg.inv)))
    found = tally(module, meta(TOKENS))
    assert found.macs == N * D * N
    assert list(found.uncounted) == ["aten.linalg_inv_ex"]
    assert found.uncounted["aten.linalg_inv_ex"] == "1"


def test_sequences_of_unequal_length_are_named_and_not_0() -> None:
    lengths = torch.empty(3, dtype=torch.int32, device="meta")
    run = torch.ops.aten._flash_attention_forward
    module = Called(lambda q: run(q, q, q, lengths, lengths, N, N, 0.0, False, False)[0])
    assert list(tally(module, meta((2 * N, H, D // H))).uncounted) == ["aten._flash_attention_forward"]


@pytest.mark.parametrize("scope", ["core", "layer", "block"])
def test_elementwise_and_scores_are_those_of_the_closed_form(scope: str) -> None:
    for backend in ("naive", "sdpa"):
        case = Case(Global(), Shape(2, 4, 5, 32, 4, prefix=1), backend, scope=scope)
        program = build(case, device="meta")
        found, paper = tally(program.module, program.inputs), case.cost()
        assert found.score_elements == paper.score_elements
        if backend == "sdpa":  # written out, the scale is one more operation on the scores
            assert sum(found.elementwise.values()) == paper.elementwise


@pytest.mark.parametrize(("backend", "tokens"), [("naive", 49), ("naive", 197), ("sdpa.math", 20)])
def test_peak_bytes_are_those_that_the_allocator_sees(backend: str, tokens: int) -> None:
    from vitbench.measure.memory import peak_bytes

    case = Case(Global(), Shape(2, 1, tokens, 64, 4), "naive", scope="block")
    real, shapes = build(case), build(case, device="meta")
    real.call()
    found: Tally = tally(shapes.module, shapes.inputs)
    assert found.peak_bytes == peak_bytes(real.call, "cpu")


def test_training_holds_what_the_backward_needs_but_not_the_gradients_of_weights() -> None:
    """Two layers: the input of the second, its result, their two gradients of which one at a time."""
    rows, width = 100, 64
    found = tally(
        on_meta(lambda: nn.Sequential(nn.Linear(width, width), nn.Linear(width, width))),
        meta((rows, width)),
        training=True,
    )
    assert found.peak_bytes == 4 * rows * width * 4


def test_nothing_that_takes_a_gradient_is_an_error() -> None:
    with pytest.raises(ValueError, match="takes a gradient"):
        tally(nn.Identity(), meta(TOKENS), training=True)


def test_torch_is_left_as_it_was() -> None:
    before = nn.functional.scaled_dot_product_attention
    with pytest.raises(RuntimeError):
        tally(nn.Linear(3, 3, device="meta"), meta((1, 4)))
    assert nn.functional.scaled_dot_product_attention is before
    assert torch.ones(2, 2).device.type == "cpu"


def test_a_loop_of_higher_order_is_named_and_not_0() -> None:
    from torch._higher_order_ops.map import map as mapped

    module = Called(lambda x: mapped(lambda y: y @ y.mT, x))
    assert list(tally(module, meta((3, 4, 5))).uncounted) == ["map_impl"]


def test_scores_that_are_written_to_in_part_or_looked_at_stay_scores() -> None:
    """As positions are added to the scores of all but the CLS token (MViT)."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT
        scores[..., 1:, 1:] = scores[..., 1:, 1:] + q[..., 1:, :1]
        scores[..., 0].abs()
        return scores.softmax(-1) @ v

    found = tally(Called(attend), meta(*QKV))
    assert found.by("term") == {"scores": CORE // 2, "mix": CORE // 2}
    assert found.score_elements == H * N * N


def test_two_scores_that_are_added_are_scores_both() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT + v @ k.mT).softmax(-1) @ v

    assert tally(Called(attend), meta(*QKV)).by("term") == {"scores": CORE, "mix": CORE // 2}


def test_a_weight_that_is_written_out_from_stays_a_weight() -> None:
    def run(inner: nn.Module, x: Tensor) -> Any:
        torch.mm(inner.weight, x.T, out=torch.empty(D, N, device="meta"))
        return inner.weight @ x.T

    module = on_meta(lambda: Called(run, nn.Linear(D, D)))
    assert tally(module, meta((N, D))).by("term") == {"linear": 2 * N * D * D}


class Twice(torch.autograd.Function):
    """x w, then that times v."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        h = x @ w
        ctx.save_for_backward(h, w, v)
        return h @ v

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        h, w, v = ctx.saved_tensors
        return grads[0] @ v.T @ w.T, None, h.T @ grads[0]


def test_gradients_of_a_function_with_a_backward_of_its_own_have_no_term() -> None:
    def run(inner: nn.Linear, x: Tensor) -> Any:
        return Twice.apply(inner(x), inner.weight, x.T)

    found = tally(on_meta(lambda: Called(run, nn.Linear(D, D))), meta((N, D)), training=True)
    assert found.by("term")["other gradients"] == 2 * N * N * D + N * D * D  # of x w, of v and of x
    assert found.by("term")["linear"] == 3 * N * D * D


def test_kernels_called_by_themselves_have_scores_too() -> None:
    for what in ("flash, heads after tokens", "efficient, heads after tokens"):
        make, sizes, _ = HIDDEN[what]
        found = tally(on_meta(make), meta(*sizes))
        assert found.by("term") == {"scores": CORE // 2, "mix": CORE // 2}
        assert (found.score_elements, found.attentions) == (H * N * N, [(N, N)])
        assert sum(found.elementwise.values()) == H * N * N


def test_elementwise_of_training_is_twice_that_of_the_forward() -> None:
    module = on_meta(lambda: nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.LayerNorm(D)))
    forward, both = (tally(module, meta(TOKENS), training=training) for training in (False, True))
    assert sum(both.elementwise.values()) == 2 * sum(forward.elementwise.values()) == 2 * 3 * N * D


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: torch.addbmm(x[0], x, x.mT.contiguous().expand(2, 5, 5)[:, :, :5]), 2 * 5 * 5 * 5),
        (lambda x: torch.addmv(x[0, 0], x[0], x[0, 0]), 25),
        (lambda x: torch.dot(x[0, 0], x[0, 1]), 5),
        (lambda x: x[0].clone().addmm_(x[0], x[1]), 125),
        (lambda x: x.clone().baddbmm_(x, x), 2 * 125),
        (lambda x: torch.vdot(x[0, 0], x[0, 1]), 5),
    ],
)
def test_products_with_vectors_and_sums_of_batches_have_formulas(call: Any, expected: int) -> None:
    found = tally(Called(call), meta((2, 5, 5)))
    assert (found.macs, found.uncounted) == (expected, {})
