"""Plug-ins by name: found in their folder, never overwritten, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from vitbench.backend import backends
from vitbench.counter import counters
from vitbench.layer import layers
from vitbench.operator import operators
from vitbench.refusal import Refusal
from vitbench.registry import Registry

KINDS = [operators, backends, counters, layers]


@dataclass(frozen=True)
class Thing:
    name: str


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[Thing]:
    """A registry of an empty folder of plug-ins."""
    (tmp_path / "no_things").mkdir()
    (tmp_path / "no_things" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return Registry("thing", "no_things")


def test_a_name_taken_twice_raises(things: Registry[Thing]) -> None:
    first = things.add(Thing("one"))
    with pytest.raises(ValueError, match="thing 'one' is already registered"):
        things.add(Thing("one"))
    assert things["one"] is first


@pytest.mark.parametrize("registry", KINDS, ids=lambda registry: registry.kind)
def test_a_registered_name_cannot_be_taken_again(registry: Registry[Thing]) -> None:
    for item in registry:
        with pytest.raises(ValueError, match="already registered"):
            registry.add(item)


def test_an_unknown_name_is_refused_and_the_known_ones_are_listed(things: Registry[Thing]) -> None:
    for name in ("two", "one"):
        things.add(Thing(name))
    with pytest.raises(Refusal, match=r"^unknown thing 'three'; known: one, two$"):
        things["three"]


@pytest.mark.parametrize("registry", KINDS, ids=lambda registry: registry.kind)
def test_an_unknown_name_lists_every_known_one(registry: Registry[Thing]) -> None:
    with pytest.raises(Refusal) as refused:
        registry["nothing"]
    assert f"unknown {registry.kind} 'nothing'" in str(refused.value)
    assert str(refused.value).endswith(", ".join(item.name for item in registry))


def test_items_come_in_the_order_of_their_names(things: Registry[Thing]) -> None:
    for name in "bca":
        things.add(Thing(name))
    assert [thing.name for thing in things] == ["a", "b", "c"]


def test_a_file_dropped_into_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dropped_things"
    folder.mkdir()
    (tmp_path / "dropped_registry.py").write_text(
        "from vitbench.registry import Registry\nthings = Registry('thing', 'dropped_things')\n"
    )
    (folder / "__init__.py").touch()
    (folder / "new.py").write_text(
        "from dropped_registry import things\nclass New:\n    name = 'new'\nthings.add(New())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from dropped_registry import things

    assert things["new"].name == "new"
    assert len(list(things)) == 1


@pytest.mark.parametrize("registry", [operators, layers, backends, counters], ids=lambda registry: registry.kind)
def test_every_file_of_the_folders_of_plug_ins_registers_something(registry: Registry[Thing]) -> None:
    folders = [Path(__file__).parents[1].joinpath(*package.split(".")) for package in registry.packages]
    files = {path.stem for folder in folders for path in folder.glob("[!_]*.py")}
    modules = {(item if isinstance(item, type) else type(item)).__module__.rpartition(".")[2] for item in registry}
    assert files == modules


def test_every_operator_has_its_layer() -> None:
    assert [kind.name for kind in operators] == [kind.name for kind in layers]
