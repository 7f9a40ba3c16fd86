"""Every reason is shown at work: a tiny module whose count differs by exactly its amount."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tiny

from vitbench.audits import reasons
from vitbench.counter import counters

PLACES = {one.name: one.audited for one in counters}
HERE = [entry for entry in reasons.entries() if counters[entry["counter"]].lacking() is None]
OPEN = {  # what torch runs on meta tensors in Python, and ptflops then sees, is known for products alone
    ("ptflops", "leaky_relu", "meta"),
    ("ptflops", "interpolation", "meta"),
    ("ptflops", "sampling", "meta"),
}


class Shown(NamedTuple):
    """A count of a tiny module: off by how much, and why. words: of the reasons."""

    counter: str
    module: str
    step: str
    off: int
    why: list[dict[str, Any]]

    @property
    def words(self) -> set[str]:
        return {one["words"] for one in self.why}


def shown() -> Iterator[Shown]:
    found = tiny.counted()
    for counter, places in PLACES.items():
        for place in places:
            for name in tiny.TINY:
                digests = {one["step"]: one["digest"] for one in found["exact.meta"][name] if "digest" in one}
                for answer in found.get(f"{counter}.{place}", {}).get(name, ()):
                    if answer.get("macs") is not None:
                        digest = digests.get(answer["step"], digests["baseline"])
                        why = reasons.explained(counter, digest, answer["setting"])
                        yield Shown(counter, name, answer["step"], answer["macs"] - digest["macs"], why)


def title(entry: reasons.Entry) -> str:
    return f"{entry['counter']}: {entry['words']}"


@pytest.mark.parametrize("entry", HERE, ids=title)
def test_the_count_of_a_tiny_module_is_off_by_the_amount_of_the_reason(entry: reasons.Entry) -> None:
    """By it alone, or by it and by others that are shown alone elsewhere."""
    of_it = [one for one in shown() if one.counter == entry["counter"]]
    alone = set[str]().union(*(one.words for one in of_it if len(one.why) == 1))
    with_it = [one for one in of_it if entry["words"] in one.words and one.words - {entry["words"]} <= alone]
    assert with_it, "no module in tests/tiny.py shows it"
    least = min(with_it, key=lambda one: len(one.why))
    amounts = {one["words"]: one["macs"] for one in least.why}
    assert amounts[entry["words"]] == least.off - sum(amounts.values()) + amounts[entry["words"]] != 0


def test_every_count_of_a_tiny_module_is_explained_whatever_is_varied() -> None:
    left = {(one.counter, one.module, one.step) for one in shown() if one.off != sum(why["macs"] for why in one.why)}
    assert left == OPEN & left
    assert {one.counter for one in shown()} >= {"dispatch", "torch"}


@pytest.mark.parametrize("entry", HERE, ids=title)
def test_the_source_of_a_reason_is_there(entry: reasons.Entry) -> None:
    for part in entry["source"].split("; "):
        path, _, names = part.partition(": ")
        package = importlib.util.find_spec(path.partition("/")[0])
        assert package is not None and package.origin is not None
        text = (Path(package.origin).parents[1] / path).read_text()
        for name in re.split(r"[.,] ?", names):
            assert re.search(rf"\b{name}\b", text), f"{path} has no {name}"


def test_an_entry_says_what_it_must_and_no_more() -> None:
    kinds = ("products", "functions", "modules", "operators", "fvcore")
    for entry in reasons.entries():
        assert {"counter", "words", "source"} <= entry.keys() <= {"counter", "words", "source", "but", "when", *kinds}
        assert entry["counter"] in PLACES
        assert any(kind in entry for kind in kinds)
        assert all(way.keys() <= reasons.BASELINE.keys() for way in entry.get("when", ()))
    words = [(entry["counter"], entry["words"]) for entry in reasons.entries()]
    assert len(set(words)) == len(words)


def test_a_product_is_missed_once() -> None:
    product = {"term": "scores", "operator": "scaled_dot_product_attention", "function": "", "kind": "", "within": ()}
    whole = {**product, "whole": ("_native_multi_head_attention",), "macs": 10, "elements": 1, "scores": 1}
    digest = {"products": [whole], "functions": [], "modules": [], "operators": [], "fvcore": []}
    (reason,) = reasons.explained("fvcore", digest)
    assert reason["macs"] == -10 and "nn.MultiheadAttention" in reason["words"]
    assert reason["by"] == {"scaled_dot_product_attention": -10}
    (reason,) = reasons.explained("fvcore", digest, {"grad": "grad"})
    assert reason["macs"] == -10 and "nn.MultiheadAttention" not in reason["words"]
