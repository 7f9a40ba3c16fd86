"""A named grid of cases with the question it asks: one TOML file in benchmarks/sweeps/.

    question = "How does time grow with resolution?"

    [common]                    # taken over by every grid that does not say otherwise
    dim = 768
    heads = 12
    batch = 1

    [[grid]]
    profiles = ["quick"]
    devices = ["cpu"]           # both, if left out
    operator = ["global", "window7-shift3"]
    backend = ["naive", "sdpa"]
    image = [224, 384]          # pixels a side, with patch; or height and width in tokens
    patch = 16

    [[grid]]
    profiles = ["quick"]
    model = ["vit_b_16", "swin_t"]  # instead of operator, dim, heads, prefix and patch; scope is model then
    backend = "sdpa"
    image = 224
    batch = 1

Every key of a grid but profiles and devices is one value or a list of values; the grid is their product.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitbench.backend import backends
from vitbench.case import DEVICES, Case
from vitbench.model import models
from vitbench.operator import parse_operator
from vitbench.refusal import Refusal
from vitbench.shape import Shape, grid_of

PROFILES = ("smoke", "quick", "full")
FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "sweeps"

_FILTERS = ("profiles", "devices")
_TEXTS = ("operator", "model", "backend", "dtype", "scope", "mode")
_NUMBERS = ("image", "patch", "height", "width", "batch", "dim", "heads", "prefix", "copy")
_OF_A_MODEL = ("operator", "dim", "heads", "prefix", "patch", "height", "width", "scope")
_DEFAULTS = {"prefix": 0, "copy": 0, "dtype": "float32", "scope": "layer", "mode": "inference"}


@dataclass(frozen=True)
class Sweep:
    """grids: profile and the values of every axis, as read."""

    name: str
    question: str
    path: Path
    grids: tuple[Mapping[str, Any], ...]

    def cases(self, profile: str, device: str) -> list[Case]:
        """The cases of a profile on a device, each once."""
        grids = [grid for grid in self.grids if profile in grid["profiles"] and device in grid["devices"]]
        return list(dict.fromkeys(case for grid in grids for case in self._product(grid, device)))

    def _product(self, grid: Mapping[str, Any], device: str) -> Iterator[Case]:
        axes = {key: values for key, values in grid.items() if key not in _FILTERS}
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values, strict=True))
            try:
                yield _case(point, device)
            except Refusal as error:
                raise Refusal(f"{self.path.name}: {error}") from None
            except ValueError as error:
                raise Refusal(f"{self.path.name}: {error}") from None


def load_sweeps(folder: Path = FOLDER) -> dict[str, Sweep]:
    """Every sweep of the folder by name. All their cases are built once, so that nothing bad is found late."""
    sweeps = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    for sweep in sweeps.values():
        for profile, device in itertools.product(PROFILES, DEVICES):
            sweep.cases(profile, device)
    return sweeps


def select(names: list[str], profile: str, device: str, folder: Path = FOLDER) -> dict[Case, list[str]]:
    """The distinct cases of the named sweeps (all, if none is named), each with the sweeps that ask for it."""
    sweeps = load_sweeps(folder)
    if profile not in PROFILES:
        raise Refusal(f"unknown profile {profile!r}; known: {', '.join(PROFILES)}")
    for name in names:
        if name not in sweeps:
            raise Refusal(f"unknown sweep {name!r}; known: {', '.join(sweeps)}")
    asked: dict[Case, list[str]] = {}
    for name in names or sweeps:
        for case in sweeps[name].cases(profile, device):
            asked.setdefault(case, []).append(name)
    if not asked:
        raise Refusal(f"no case for profile {profile!r} on {device} in {', '.join(names or sweeps)}")
    return asked


def _case(point: Mapping[str, Any], device: str) -> Case:
    backends[point["backend"]]  # an unknown name is refused here
    rest = {key: point[key] for key in ("backend", "dtype", "mode", "copy")}
    if "model" in point:
        variant = models[point["model"]]
        shape = variant.shape(point["image"], point["batch"])
        return Case(variant.model, shape, device=device, scope="model", **rest)
    if "image" in point:
        side = grid_of(point["image"], point["patch"])
        height, width = side, side
    else:
        height, width = point["height"], point["width"]
    shape = Shape(point["batch"], height, width, point["dim"], point["heads"], point["prefix"])
    return Case(parse_operator(point["operator"]), shape, device=device, scope=point["scope"], **rest)


def _read(path: Path) -> Sweep:
    try:
        content = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path.name} is not TOML: {error}") from None
    if unknown := sorted(set(content) - {"question", "common", "grid"}):
        raise Refusal(f"{path.name}: unknown key {unknown[0]!r}; known: question, common, grid")
    grids, common = content.get("grid"), content.get("common", {})
    if not isinstance(content.get("question"), str) or not grids or not isinstance(grids, list):
        raise Refusal(f"{path.name}: expected a question in quotes and at least one [[grid]]")
    if not all(isinstance(table, dict) for table in (common, *grids)):
        raise Refusal(f"{path.name}: expected [common] and every [[grid]] to be tables of keys and values")
    grids = tuple(_axes(path, {**common, **grid}) for grid in grids)
    return Sweep(path.stem, content["question"], path, grids)


def _axes(path: Path, grid: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Every key as a list of values, defaults filled in; a key or a value that cannot be is refused."""
    known = (*_FILTERS, *_TEXTS, *_NUMBERS)
    if unknown := sorted(set(grid) - set(known)):
        raise Refusal(f"{path.name}: unknown key {unknown[0]!r}; known: {', '.join(known)}")
    taken = _OF_A_MODEL if "model" in grid else ()
    for key in taken:
        if key in grid:
            raise Refusal(f"{path.name}: {key} is too much beside model, which gives it")
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in taken}
    given = {**defaults, "devices": list(DEVICES), **grid}
    axes = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
    for key, values in axes.items():
        kind = int if key in _NUMBERS else str
        if not values:
            raise Refusal(f"{path.name}: {key} is empty; expected at least one value")
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                expected = "whole numbers" if kind is int else "text in quotes"
                raise Refusal(f"{path.name}: {key} = {value!r}; expected {expected}")
    sides = {"image", "patch"} if "image" in axes else {"height", "width"}
    sides, needed = ({"image"}, ("model",)) if taken else (sides, ("operator", "dim", "heads"))
    for key in ("profiles", "backend", "batch", *needed, *sorted(sides)):
        if key not in axes:
            raise Refusal(f"{path.name}: {key} is missing in a [[grid]]")
    if extra := sorted({"image", "patch", "height", "width"} & set(axes) - sides):
        raise Refusal(f"{path.name}: {extra[0]} is too much; expected image and patch, or height and width")
    for key, names in (("profiles", PROFILES), ("devices", DEVICES)):
        for value in axes[key]:
            if value not in names:
                raise Refusal(f"{path.name}: unknown value {value!r} in {key}; known: {', '.join(names)}")
    return axes
