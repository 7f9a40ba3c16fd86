"""Why a counter is off, from a file of reasons: amounts that follow from the exact count, operator by operator.

Each entry of reasons.toml has

    counter    whose
    words      why, in a few words
    source     file and function of the counter's code
    products, functions, modules, operators, fvcore
               a selection of groups of these, and which of their counts it adds (macs, elements, scores, in, out,
               biased, held, added ...), how often: macs = -1 is missed, macs = 1 counted twice
    but        what is left out of all of these: a list of selections
    when       place, grad, mode: a list of where it applies, if not always

A selection gives, for fields of the digest (term, operator, function, kind, within, whole), the values that will do, of
which * stands for anything.
The amount of an entry is the sum. A product that is missed is missed by one entry alone, the first of its counter, and
gives no elements.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

Entry = Mapping[str, Any]
BASELINE = {"place": "device", "grad": "no_grad", "mode": "eval"}
SEVERAL = ("within", "whole")  # fields of which a group has any number
FIELDS = ("term", "operator", "function", "kind", *SEVERAL)
CALLS = {  # and what names them
    "functions": "function",
    "modules": "kind",
    "operators": "operator",
    "fvcore": "function",
}


@cache
def entries() -> tuple[Entry, ...]:
    """All, in the order of the file."""
    return tuple(tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["reason"])


def explained(counter: str, digest: Entry, setting: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """What is known of a count of that digest, largest first: words, source, signed MACs, and MACs by operator.

    setting: place, grad and mode, where not those of the baseline.
    """
    at, missed, found = {**BASELINE, **(setting or {})}, set[int](), []
    for entry in entries():
        if entry["counter"] == counter and _applies(entry, at):
            by = Counter[str]()
            for name, macs in (*_of_products(entry, digest, missed), *_of_calls(entry, digest)):
                by[name] += macs
            by = Counter({name: macs for name, macs in by.items() if macs})
            if total := sum(by.values()):
                found.append({"words": entry["words"], "source": entry["source"], "macs": total, "by": dict(by)})
    return sorted(found, key=lambda one: -abs(one["macs"]))


def _applies(entry: Entry, setting: Mapping[str, str]) -> bool:
    ways = entry.get("when", [{}])
    return any(all(setting[key] in values for key, values in way.items()) for way in ways)


def _of_products(entry: Entry, digest: Entry, missed: set[int]) -> Iterator[tuple[str, int]]:
    if "products" not in entry:
        return
    times = entry["products"].get("macs", 0)
    for number, product in enumerate(digest["products"]):
        if (times > 0 or number not in missed) and _selected(entry, "products", product):
            if times < 0:
                missed.add(number)
            yield product["operator"], _amount(entry["products"], product)


def _of_calls(entry: Entry, digest: Entry) -> Iterator[tuple[str, int]]:
    for what, field in CALLS.items():
        if what in entry:
            for group in digest[what]:
                if _selected(entry, what, group):
                    yield group[field], _amount(entry[what], group)


def _amount(selection: Entry, group: Entry) -> int:
    return sum(times * group[count] for count, times in selection.items() if count not in FIELDS)


def _selected(entry: Entry, what: str, group: Entry) -> bool:
    return _fits(entry[what], group) and not any(_fits(one, group) for one in entry.get("but", ()))


def _fits(selection: Entry, group: Entry) -> bool:
    for field in FIELDS:
        if field in selection:
            has = group.get(field, ()) if field in SEVERAL else (group.get(field, ""),)
            if not any(fnmatchcase(one, value) for one in has for value in selection[field]):
                return False
    return True
