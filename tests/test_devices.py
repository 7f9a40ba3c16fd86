"""Cards by their datasheets: every figure plausible and with its source; what is not known is refused."""

from __future__ import annotations

import pytest

from vitbench.devices import card, cards
from vitbench.refusal import Refusal


@pytest.mark.parametrize("name", cards())
def test_figures_are_plausible_in_their_units(name: str) -> None:
    found = card(name)
    assert found.name == name and found.title.startswith("NVIDIA ")
    assert 1e11 < found.bandwidth < 1e13
    assert {"float16", "float32"} <= set(found.flops) <= {"float16", "bfloat16", "float32", "float64"}
    assert 5e12 < found.peak("float32") < 2e14
    assert 1.5 < found.peak("float16") / found.peak("float32") <= 30  # 30 is a B200
    assert found.flops.get("bfloat16") in (None, found.peak("float16"))
    assert 50 < found.peak("float16") / found.bandwidth < 500  # FLOPs a byte
    assert found.memory is None or 8e9 <= found.memory <= 300e9
    assert found.l2 is None or 1e6 < found.l2 < 2e8


@pytest.mark.parametrize("name", cards())
def test_figures_have_a_source(name: str) -> None:
    assert any(word in card(name).source for word in ("whitepaper", "data sheet"))


@pytest.mark.parametrize("spelled", ["rtx4090", "RTX 4090", "rtx-4090", "4090", "NVIDIA GeForce RTX 4090"])
def test_a_card_may_be_spelled_as_people_do(spelled: str) -> None:
    assert card(spelled).name == "rtx4090"


@pytest.mark.parametrize("spelled", ["", " ", "rtx", "rtx4090\u00b2", "RTX 4090 Ti", "4"])
def test_what_is_near_a_card_is_none(spelled: str) -> None:
    with pytest.raises(Refusal, match="unknown device"):
        card(spelled)


def test_no_two_cards_are_spelled_alike() -> None:
    plain = ["".join(filter(str.isalnum, name)).removeprefix("rtx") for name in cards()]
    assert len(set(plain)) == len(plain)


def test_an_unknown_card_is_refused_with_the_known_ones_and_how_to_add_one() -> None:
    with pytest.raises(Refusal, match="unknown device 'gtx480'; known: here, ") as refused:
        card("gtx480")
    said = str(refused.value)
    assert all(name in said for name in cards()) and "\n" not in said
    assert "[gtx480] with title, flops, bandwidth, memory, l2 and source into vitbench/devices.toml" in said


def test_a_peak_that_the_datasheet_lacks_is_not_guessed() -> None:
    with pytest.raises(Refusal, match=r"V100.* no known peak in bfloat16; known: float16, float32"):
        card("v100").peak("bfloat16")


def put(text: str, folders: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the cards that come with vitbench."""
    path = folders.mktemp("devices") / "devices.toml"
    path.write_text(text)
    monkeypatch.setattr("vitbench.devices.FILE", str(path))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('[mine]\ntitle = "x"\nflops = {}\nbandwidth = 1e9', "missing 1 required positional argument: 'source'"),
        ('[mine]\ntitle = "x"\nflops = {}\nbandwidth = 1e9\nsource = "y"\nwatts = 5', "unexpected keyword"),
        ('[mine]\ntitle = "x"\nflops = 5\nbandwidth = 1e9\nsource = "y"', "not a mapping"),
        ('[mine]\ntitle = "x"\nflops = {}\nbandwidth = 0\nsource = "y"', "bandwidth is 0, not a number above 0"),
        ('[mine]\ntitle = "x"\nflops = {}\nbandwidth = 1e9\nsource = "y"\nl2 = "64MB"', "l2 is '64MB', not a number"),
        ('[mine]\ntitle = "x"\nflops = {}\nbandwidth = 1e9\nsource = "y"\nl2 = nan', "l2 is nan, not a number"),
        ('[mine]\ntitle = "x"\nflops = {float32 = -1}\nbandwidth = 1e9\nsource = "y"', "float32 is -1, not a number"),
    ],
)
def test_an_entry_that_is_no_card_is_refused(
    entry: str, said: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(entry, tmp_path_factory, monkeypatch)
    with pytest.raises(Refusal, match=rf"\[mine\].*{said}.*expected title, flops, bandwidth, source"):
        cards.__wrapped__()


ENTRY = 'title = "x"\nflops = {}\nbandwidth = 1e9\nsource = "y"\n'


@pytest.mark.parametrize(
    ("text", "said"), [("[mine", "is no TOML"), (f"[rtx-1]\n{ENTRY}[RTX1]\n{ENTRY}", "rtx-1, RTX1 are spelled alike")]
)
def test_a_file_of_cards_that_cannot_be_read_is_refused(
    text: str, said: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(text, tmp_path_factory, monkeypatch)
    with pytest.raises(Refusal, match=said):
        cards.__wrapped__()
