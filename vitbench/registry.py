"""Plug-ins by name: a file dropped into a folder is found, a name taken twice raises."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from vitbench.refusal import Refusal


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Every plug-in of one kind. The packages that hold them are imported on first use.

    kind: the word for one of them in messages. packages: dotted names of the folders of plug-ins.
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self.packages = packages
        self._items: dict[str, T] = {}
        self._loaded = False

    def add(self, item: T) -> T:
        """Register an item under its name; a name already taken raises ValueError."""
        if item.name in self._items:
            raise ValueError(f"{self.kind} {item.name!r} is already registered")
        self._items[item.name] = item
        return item

    def __getitem__(self, name: str) -> T:
        """The item of that name; an unknown one raises Refusal and lists the known names."""
        self._load()
        if name not in self._items:
            raise Refusal(f"unknown {self.kind} {name!r}; known: {', '.join(sorted(self._items))}")
        return self._items[name]

    def __iter__(self) -> Iterator[T]:
        self._load()
        return iter(sorted(self._items.values(), key=lambda item: item.name))

    def _load(self) -> None:
        if self._loaded:
            return
        for package in self.packages:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                importlib.import_module(f"{package}.{module.name}")
        self._loaded = True  # not before: a plug-in that fails to import must fail every time
