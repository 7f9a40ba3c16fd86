"""Which tests run here, and what is made of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_table import FaultTable

# Where tests run side by side, pytest-benchmark would time nothing.
os.environ.pop("PYTEST_XDIST_WORKER", None)
# A page is as wide, and as colourful, as these say.
for variable in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(variable, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "write the table of faults in this file (README.md) from the fault tests, if all of them pass"
    parser.getgroup("vitbench").addoption("--fault-table", type=Path, metavar="FILE", help=words)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(what, happens, lost): a row of the table of faults in README.md")
    if path := config.getoption("--fault-table"):
        config.pluginmanager.register(FaultTable(path))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    import torch

    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="torch sees no CUDA device here"))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """On tiny tensors threads only wait for one another, and for whoever else uses the cores."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def switches_stay(one_thread: None) -> Iterator[None]:
    """A test leaves the process as it found it; a source of a user's own adds the working directory to sys.path."""
    from switches import moved, switches

    path, before = [*sys.path], switches()
    yield
    sys.path[:] = path
    assert not (left := moved(before, switches())), left


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Torch stops compiling after a few shapes of one function and runs it eagerly; so forget them."""
    import torch

    torch.compiler.reset()
    yield
    torch.compiler.reset()
