"""What a compiler merges: all that hangs together between the same products, and nothing across one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from vitbench.regions import compiled
from vitbench.source import Opened, open_source
from vitbench.step import Step, Trace
from vitbench.trace import trace
from vitbench.work import PRODUCTS

B, N, D = 2, 6, 8
SIZE = B * N * D * 4  # bytes of x


class Called(nn.Module):
    """A function of x (B, N, D) and of a weight (D, D)."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.zeros(D, D, device="meta"))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight)


def seen(function: Callable[[Tensor, Tensor], Tensor]) -> Trace:
    x = torch.zeros(B, N, D, device="meta")
    return trace(Opened("source", Called(function), (x,), None), B, dtype="float32")


def merged(function: Callable[[Tensor, Tensor], Tensor]) -> list[Step]:
    return list(compiled(seen(function)).steps)


def sizes(step: Step) -> tuple[int, int]:
    work = step.work()
    return int(work.read), int(work.written)


def test_a_chain_is_one_region_and_what_passes_inside_costs_nothing() -> None:
    (one,) = merged(lambda x, _: functional.softmax(functional.gelu(x) * 2, -1).exp())
    assert one.kind == "region" and one.dtype == "float32" and sizes(one) == (SIZE, SIZE)


def test_a_copy_that_only_arranges_is_of_the_region() -> None:
    (one,) = merged(lambda x, _: functional.gelu(x.mT.contiguous()))
    assert sizes(one) == (SIZE, SIZE)


def test_one_step_is_a_region_too() -> None:
    (one,) = merged(lambda x, _: x.exp())
    assert one.kind == "region" and one.operator == "exp" and sizes(one) == (SIZE, SIZE)


def test_a_product_parts_regions() -> None:
    steps = merged(lambda x, w: ((x * 2).exp() @ w).exp() * 3)
    assert [step.kind for step in steps] == ["region", "product", "region"]
    assert all(sizes(step) == (SIZE, SIZE) for step in (steps[0], steps[2]))


def test_chains_that_do_not_touch_stay_apart() -> None:
    steps = merged(lambda x, w: (x.exp() * 2) @ (w.exp() * 2))
    assert [step.kind for step in steps] == ["region", "region", "product"]
    assert [sizes(step)[1] for step in steps[:2]] == [SIZE, D * D * 4]


def test_a_residual_does_not_merge_across_the_product_that_it_goes_around() -> None:
    def residual(x: Tensor, w: Tensor) -> Tensor:
        x = x + 1
        return x + functional.layer_norm(x, (D,)) @ w

    before, product, after = merged(residual)
    assert sizes(before) == (SIZE, 2 * SIZE)  # what is normed, and what goes around
    assert product.kind == "product"
    assert sizes(after) == (2 * SIZE, SIZE)


def test_a_diamond_within_a_region_is_read_once() -> None:
    (one,) = merged(lambda x, _: (y := x.exp()).sin() + y.cos() + x)
    assert sizes(one) == (SIZE, SIZE)


def test_the_same_elements_in_another_shape_are_read_once() -> None:
    before, _, after = merged(lambda x, w: (y := x.exp() @ w).sin() + y.view(B, 2, 3, D).cos().view(B, N, D))
    assert sizes(before) == (SIZE, SIZE) and sizes(after) == (SIZE, SIZE)


def test_what_a_product_made_is_read_though_it_is_written_in_place() -> None:
    *_, after = merged(lambda x, w: (x @ w).relu_().add_(1).exp())
    assert sizes(after)[0] == SIZE


def test_what_is_written_in_parts_is_ready_only_with_its_last() -> None:
    def parts(x: Tensor, w: Tensor) -> Tensor:
        early = x.relu()
        both = x.new_empty(B, 2 * N, D)
        both[:, :N] = early @ w
        both[:, N:] = early
        return both * 2

    assert ordered(merged(parts))


def test_no_step_runs_before_what_it_reads() -> None:
    def late(x: Tensor, w: Tensor) -> Tensor:
        early = x.relu()
        product = early @ w
        return product + (early + 1)  # of the region of relu, and written down after the product

    steps = merged(late)
    assert [step.kind for step in steps] == ["region", "product", "region"]
    assert ordered(steps)


@pytest.mark.parametrize("last", [lambda x: x, lambda x: x * 2])
def test_a_compiled_unfold_is_one_kernel(last: Callable[[Tensor], Tensor]) -> None:
    steps = merged(lambda x, w: last(functional.unfold(x[:, None] @ w, 2)) @ torch.ones(35, D, device=x.device))
    (region,) = (step for step in steps if step.kind == "region" and step.data)
    assert region.work(4).launches == 1


def index(like: Tensor, *shape: int) -> Tensor:
    return like.new_zeros(shape, dtype=torch.int64)


def test_what_is_gathered_from_weights_is_looked_up_by_each_element_that_it_meets() -> None:
    """As biases by relative position, arranged and scaled before they meet the scores."""
    steps = merged(lambda x, w: (x @ x.mT + (w[:, 0][index(w, N, N)].T.contiguous() * 2)).softmax(-1) @ x)
    looked = [step.work().looked for step in steps if step.looked]
    assert looked == [B * N * N * (4 + 8)]  # float32 of the table, int64 of the index


def test_what_is_gathered_from_data_is_read_once() -> None:
    steps = merged(lambda x, w: x[:, index(w, N)] + 1)
    assert not any(step.looked for step in steps)


def masked(keys: int, of_data: bool, whole: bool) -> list[Step]:
    def attend(x: Tensor, w: Tensor) -> Tensor:
        q = x.new_zeros(B, 2, keys, D) + x.sum()
        mask = w.new_zeros(2, keys, keys) + (x.sum() if of_data else w.sum())
        return functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    return list(compiled(seen(attend), whole).steps)


def test_a_mask_that_all_images_share_was_once_written_out_for_each() -> None:
    *before, attention = steps = masked(16, False, True)
    mask = attention.given[3]
    assert mask.shape == (B, 2, 16, 16) and mask.data and ordered(steps)
    (writer,) = (step for step in before if mask.storage in {part.storage for part in step.made})
    assert writer.looked == B * 2 * 16 * 16 * 4


@pytest.mark.parametrize(("keys", "of_data", "whole"), [(16, False, False), (16, True, True), (12, False, True)])
def test_other_masks_are_read_as_they_are(keys: int, of_data: bool, whole: bool) -> None:
    """By newer torch, masks of data, and of keys that the kernel does not take as they lie."""
    *_, attention = masked(keys, of_data, whole)
    assert attention.given[3].shape == (2, keys, keys) and not any(s.looked for s in masked(keys, of_data, whole))


def ordered(steps: list[Step]) -> bool:
    """Whether whatever a step reads, and some step makes, was made before it."""
    made: set[int] = set()
    every = {part.storage for step in steps for part in step.made}
    for step in steps:
        here = {part.storage for part in step.made}
        if any(part.storage in every - made - here for part in step.given):
            return False
        made |= here
    return True


@pytest.mark.parametrize("source", ["timm:test_vit", "timm:test_convnext", "timm:test_efficientnet"])
def test_a_compiled_model_moves_less_and_computes_the_same(source: str) -> None:
    eager = trace(open_source(source, (160, 160), 2), 2)
    found = compiled(eager)
    assert len(found.steps) < len(eager.steps) and ordered(list(found.steps))
    assert sum(work.bytes for work in found.works()) < 0.9 * sum(work.bytes for work in eager.works())
    products = [[step for step in one.steps if step.kind in PRODUCTS] for one in (eager, found)]
    assert {*products[0]} == {*products[1]} and len(products[0]) == len(products[1])
    assert {step.kind for step in found.steps} <= {*PRODUCTS, "region"}
