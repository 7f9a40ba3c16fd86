"""A sweep is read whole, and what cannot be is refused before anything runs, naming the file and what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vitbench.case import Case
from vitbench.models.swin import Swin
from vitbench.models.vit import Vit
from vitbench.operator import operators
from vitbench.refusal import Refusal
from vitbench.shape import Shape
from vitbench.sweep import FOLDER, PROFILES, load_sweeps, select

SOUND = """
question = "How does time grow?"

[[grid]]
profiles = ["smoke", "quick"]
operator = ["global", "window7-shift3"]
image = [224, 448]
patch = 16
dim = 96
heads = 3
batch = 2
backend = ["naive", "sdpa"]
scope = "core"
"""


def write(folder: Path, text: str, name: str = "growth") -> Path:
    (folder / f"{name}.toml").write_text(text)
    return folder


def replaced(old: str, new: str) -> str:
    assert SOUND.count(old) == 1
    return SOUND.replace(old, new)


def test_a_grid_is_the_product_of_its_axes_with_defaults_filled_in(tmp_path: Path) -> None:
    cases = load_sweeps(write(tmp_path, SOUND))["growth"].cases("smoke", "cpu")
    assert len(cases) == 2 * 2 * 2
    assert {case.shape.height for case in cases} == {14, 28}
    assert {(case.dtype, case.mode, case.scope, case.shape.prefix) for case in cases} == {
        ("float32", "inference", "core", 0)
    }


def test_a_profile_has_only_the_grids_that_name_it(tmp_path: Path) -> None:
    sweep = load_sweeps(write(tmp_path, SOUND))["growth"]
    assert sweep.cases("full", "cpu") == []
    assert sweep.cases("smoke", "cpu") == sweep.cases("quick", "cpu")
    assert {case.device for case in sweep.cases("quick", "cuda")} == {"cuda"}


def test_height_and_width_in_tokens_stand_for_image_and_patch(tmp_path: Path) -> None:
    folder = write(tmp_path, replaced("image = [224, 448]\npatch = 16", "height = [14, 28]\nwidth = 7"))
    cases = load_sweeps(folder)["growth"].cases("smoke", "cpu")
    assert {(case.shape.height, case.shape.width) for case in cases} == {(14, 7), (28, 7)}


def test_a_case_asked_for_twice_is_one_and_knows_who_asks(tmp_path: Path) -> None:
    write(tmp_path, SOUND + SOUND[SOUND.index("[[grid]]") :])
    write(tmp_path, SOUND, "again")
    asked = select([], "smoke", "cpu", tmp_path)
    assert len(asked) == 8
    assert set(map(tuple, asked.values())) == {("again", "growth")}
    assert set(map(tuple, select(["growth"], "smoke", "cpu", tmp_path).values())) == {("growth",)}


MALFORMED = {
    "not TOML": ("question = ", ["is not TOML"]),
    "an unknown key": (SOUND.replace("[[grid]]", "answer = 42\n[[grid]]"), ["unknown key 'answer'", "question"]),
    "an unknown key of a grid": (replaced("heads = 3", "heads = 3\nhead = 3"), ["unknown key 'head'", "heads"]),
    "no question": (replaced('question = "How does time grow?"', ""), ["question"]),
    "a question of another type": (replaced('"How does time grow?"', "7"), ["question"]),
    "no grid": ('question = "How?"', ["grid"]),
    "an empty list of grids": ('question = "How?"\ngrid = []', ["grid"]),
    "one grid that is a table": (SOUND.replace("[[grid]]", "[grid]"), ["grid"]),
    "a grid that is a number": ('question = "How?"\ngrid = [1]', ["grid"]),
    "a common part that is a number": (SOUND.replace("[[grid]]", "common = 3\n[[grid]]"), ["common"]),
    "an unknown device": (replaced("dim = 96", 'dim = 96\ndevices = "tpu"'), ["'tpu'", "cpu, cuda"]),
    "an empty axis": (replaced("image = [224, 448]", "image = []"), ["image", "empty"]),
    "no profile": (replaced('profiles = ["smoke", "quick"]', "profiles = []"), ["profiles", "empty"]),
    "a missing key": (replaced("heads = 3\n", ""), ["heads", "missing"]),
    "no patch": (replaced("patch = 16\n", ""), ["patch", "missing"]),
    "no size": (replaced("image = [224, 448]\npatch = 16\n", ""), ["height", "missing"]),
    "two kinds of size": (replaced("patch = 16", "patch = 16\nheight = 14"), ["height", "too much"]),
    "text for a number": (replaced("dim = 96", 'dim = "96"'), ["dim = '96'", "whole numbers"]),
    "a fraction": (replaced("dim = 96", "dim = 96.0"), ["dim = 96.0", "whole numbers"]),
    "a truth for a number": (replaced("batch = 2", "batch = true"), ["batch = True", "whole numbers"]),
    "a number for text": (replaced('scope = "core"', "scope = 3"), ["scope = 3", "text in quotes"]),
    "an axis within an axis": (replaced("[224, 448]", "[[224], 448]"), ["image = [224]", "whole numbers"]),
    "an unknown profile": (replaced('"quick"', '"quack"'), ["'quack'", "smoke, quick, full"]),
    "an unknown operator": (
        replaced('"global"', '"globe"'),
        ["operator 'globe'", "known: ", "global, ", "window"],
    ),
    "an unknown parameter": (replaced("shift3", "stride3"), ["'stride'", "shift"]),
    "an unknown backend": (replaced('"naive"', '"native"'), ["unknown backend 'native'", "naive"]),
    "an unknown dtype": (replaced("dim = 96", 'dim = 96\ndtype = "float8"'), ["unknown dtype 'float8'", "float16"]),
    "an unknown scope": (replaced('"core"', '"all"'), ["no scope 'all'", "layer"]),
    "an unknown mode": (replaced("dim = 96", 'dim = 96\nmode = "both"'), ["unknown mode 'both'", "training"]),
    "a patch that does not divide": (replaced("patch = 16", "patch = 15"), ["image 224", "patch 15"]),
    "a patch of nothing": (replaced("patch = 16", "patch = 0"), ["patch 0"]),
    "heads that do not divide": (replaced("heads = 3", "heads = 5"), ["dim 96 is not divisible by 5 heads"]),
    "a batch of nothing": (replaced("batch = 2", "batch = 0"), ["batch 0 is less than 1"]),
    "a window's prefix": (replaced("dim = 96", "dim = 96\nprefix = 1"), ["prefix 0, not 1"]),
    "a shift as wide as the window": (replaced("shift3", "shift7"), ["shift 7", "window 7"]),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_sweep_is_refused_naming_file_and_fault(tmp_path: Path, fault: str) -> None:
    text, named = MALFORMED[fault]
    with pytest.raises(Refusal) as refused:
        load_sweeps(write(tmp_path, text))
    message = str(refused.value)
    assert message.startswith("growth.toml")
    assert "\n" not in message
    for part in named:
        assert part in message


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "growth.toml").write_bytes(b'question = "\xff"')
    with pytest.raises(Refusal, match=r"growth.toml is not TOML"):
        load_sweeps(tmp_path)


@pytest.mark.parametrize(
    ("names", "profile", "message"),
    [
        (["growth", "decline"], "smoke", "unknown sweep 'decline'; known: growth"),
        (["growth"], "quack", "unknown profile 'quack'; known: smoke, quick, full"),
    ],
)
def test_a_selection_refuses_names_that_are_not_known(
    tmp_path: Path, names: list[str], profile: str, message: str
) -> None:
    with pytest.raises(Refusal, match=re.escape(message)):
        select(names, profile, "cpu", write(tmp_path, SOUND))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_each_sweep_of_ours_asks_a_question_and_has_cases(path: Path) -> None:
    sweep = load_sweeps()[path.stem]
    assert sweep.question.endswith("?")
    for device in ("cpu", "cuda"):
        assert any(sweep.cases(profile, device) for profile in PROFILES)


MODEL = """
question = "Which model?"

[[grid]]
profiles = ["quick"]
model = ["vit_b_16", "swin_t"]
backend = "sdpa"
image = [224, 448]
batch = 2
"""


def test_models_by_name_are_whole_models_of_their_variant(tmp_path: Path) -> None:
    cases = load_sweeps(write(tmp_path, MODEL))["growth"].cases("quick", "cpu")
    assert [case.scope for case in cases] == ["model"] * 4
    assert cases[0] == Case(Vit(16), Shape(2, 14, 14, 768, 12, 1), "sdpa", scope="model")
    assert cases[3] == Case(Swin(7), Shape(2, 112, 112, 96, 3), "sdpa", scope="model")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"swin_t"', '"swin_x"', "unknown model 'swin_x'; known: "),
        ("image = [224, 448]", "image = 225", "image 225 is not divisible by patch 16"),
        ("image = [224, 448]\n", "", "image is missing"),
        ("batch = 2", "batch = 2\ndim = 96", "dim is too much beside model"),
        ("batch = 2", 'batch = 2\nscope = "layer"', "scope is too much beside model"),
        ("batch = 2", "batch = 2\npatch = 4", "patch is too much beside model"),
    ],
)
def test_what_a_model_cannot_have_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(Refusal, match=re.escape(said)):
        load_sweeps(write(tmp_path, MODEL.replace(old, new)))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_operator_and_model_is_in_a_quick_sweep(device: str) -> None:
    """So that verify covers them all; of a GPU, all but what the CPU alone is asked for."""
    asked = {case.operator.name for case in select([], "quick", device)}
    lacking = {kind.name for kind in operators} - asked
    assert lacking == (set() if device == "cpu" else {"additive"})
