"""vitbench list: one line and a source for everything that can be named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from vitbench.cli import main
from vitbench.listing import KINDS
from vitbench.operator import operators


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_a_name_and_one_line(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert entries and len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        assert len(entry["line"]) > 10 and "\n" not in entry["line"], entry
        assert kind not in ("operators", "models") or any(character.isdigit() for character in entry["source"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_shows_each(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 120
    for entry in KINDS[kind]():
        assert entry["name"] in page
        assert " ".join(entry["line"].split()) in " ".join(page.split())


def test_operators_are_shown_as_sweeps_write_them() -> None:
    entries = {entry["name"]: entry for entry in KINDS["operators"]()}
    assert entries["window"]["written"] == "window<window>[-shift0]"
    assert entries["window"]["parameters"] == {"window": None, "shift": 0}
    assert entries["global"]["scopes"] == ["core", "layer", "block"]
    assert {kind.name for kind in operators} - set(entries) == {k.name for k in operators if k.scopes == ("model",)}


def test_an_unknown_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "things"]) == 2
    assert "unknown kind 'things'; known: operators, models" in capsys.readouterr().err


def test_listing_imports_nothing_heavy() -> None:
    code = "import sys; from vitbench.cli import main; main(['list', 'operators']); main(['list', 'models'])"
    told = f"{code}; print({{'torch', 'numpy', 'pandas', 'rich'}} & set(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "set()\n")
