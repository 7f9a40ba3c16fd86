"""Window attention against torchvision's and timm's Swin with the same weights.

Both write -100 where ours writes -inf: exp(-100) is 4e-44, far below the tolerance.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vitbench.case import Case
from vitbench.operators.window import Window
from vitbench.program import Program, build
from vitbench.shape import Shape

EXACT = {"rtol": 0.0, "atol": 1e-10}
DIM, HEADS = 12, 3
LARGE = [(60, 60), (56, 56), (30, 45), (7, 14), (8, 8), (9, 31)]  # 60 and 30 x 45 are padded to 63, 35 x 49
SMALL = [(5, 5), (7, 7), (3, 7), (5, 14), (14, 5), (5, 23), (1, 1), (7, 8)]  # an axis that one window covers


def ours(window: int, shift: int, height: int, width: int) -> Program:
    return build(Case(Window(window, shift), Shape(2, height, width, DIM, HEADS), "naive", "float64"))


def into(theirs: nn.Module, program: Program) -> nn.Module:
    """Their module with our weights."""
    state = {name: value for name, value in theirs.state_dict().items() if "index" in name}
    for name, value in program.module.state_dict().items():
        state["relative_position_bias_table" if name == "table" else name] = value
    theirs.load_state_dict(state)
    return theirs


def torchvisions(program: Program, window: list[int], shift: list[int]) -> Tensor:
    swin = pytest.importorskip("torchvision.models.swin_transformer")
    theirs = into(swin.ShiftedWindowAttention(DIM, window, shift, HEADS).double(), program)
    rows, columns = program.module.windows.rows.side, program.module.windows.columns.side
    return theirs(program.inputs[0].view(-1, rows, columns, DIM)).flatten(1, 2).detach()


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize(("height", "width"), LARGE)
def test_window_attention_is_torchvisions_swin(height: int, width: int, shift: int) -> None:
    program = ours(7, shift, height, width)
    theirs = torchvisions(program, [7, 7], [shift if height > 7 else 0, shift if width > 7 else 0])
    torch.testing.assert_close(program.call(), theirs, **EXACT)


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize(("height", "width"), SMALL)
def test_on_an_axis_of_one_window_ours_is_torchvisions_with_that_window_unshifted(
    height: int, width: int, shift: int
) -> None:
    program = ours(7, shift, height, width)
    window = [min(7, height), min(7, width)]
    theirs = torchvisions(program, window, [shift if height > 7 else 0, shift if width > 7 else 0])
    torch.testing.assert_close(program.call(), theirs, **EXACT)


# timm rolls before it pads (timm#2438), so only grids that windows divide can agree.
@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize(("height", "width"), [(56, 56), (7, 14), (28, 21), (5, 5), (3, 7), (5, 14), (14, 5)])
def test_window_attention_is_timms_swin(height: int, width: int, shift: int) -> None:
    swin = pytest.importorskip("timm.models.swin_transformer")
    program = ours(7, shift, height, width)
    block = swin.SwinTransformerBlock(DIM, (height, width), HEADS, window_size=7, shift_size=shift).double().eval()
    into(block.attn, program)
    theirs = block._attn(program.inputs[0].view(-1, height, width, DIM)).flatten(1, 2).detach()
    torch.testing.assert_close(program.call(), theirs, **EXACT)


def test_torchvision_pads_a_5x5_grid_to_its_window_of_7_and_ours_does_not() -> None:
    swin = pytest.importorskip("torchvision.models.swin_transformer")
    program = ours(7, 0, 5, 5)
    theirs = swin.ShiftedWindowAttention(DIM, [7, 7], [0, 0], HEADS).double()
    with torch.no_grad():
        theirs.relative_position_bias_table.zero_()
        program.module.table.zero_()
    state = {name: value for name, value in program.module.state_dict().items() if name != "table"}
    theirs.load_state_dict(state, strict=False)
    seen = []
    theirs.qkv.register_forward_hook(lambda module, given, out: seen.append(out.shape[1]))
    differing = theirs(program.inputs[0].view(2, 5, 5, DIM)).flatten(1, 2).detach()
    # It attends to 49 tokens, 24 of them padding, whose keys and values are the biases of qkv.
    if seen:  # torchvision calls linear() on the weight itself in some versions
        assert seen == [49]
    assert program.module.windows.rows.padded * program.module.windows.columns.padded == 25
    assert (program.call() - differing).abs().max() > 1e-3


def test_the_table_holds_a_row_for_every_offset_within_a_window() -> None:
    assert ours(7, 3, 56, 56).module.table.shape == (13 * 13, HEADS)
    assert ours(7, 3, 5, 56).module.table.shape == (9 * 13, HEADS)
