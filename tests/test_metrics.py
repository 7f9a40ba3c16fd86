"""Every metric on a row reckoned by hand, and on rows that lack what it needs."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vitbench.metric import metrics

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "vitbench" / "metrics").glob("[a-z]*.py"))
ROW: dict[str, Any] = {
    "id": "by hand",
    "batch": 8,
    "seconds": 0.5,
    "macs": 6000,
    "moved_bytes": 300,
    "attainable_macs_per_second": 16000.0,
    "attainable_bytes_per_second": 2400.0,
    "energy_joules": 20.0,
    "host_seconds": 0.25,
}
# By hand: 6000 / 16000 = 0.375 s of products, 300 / 2400 = 0.125 s of traffic.
EXPECTED = {
    "images_per_second": 16.0,
    "macs_per_second": 12000.0,
    "rate_share": 0.75,
    "bandwidth_share": 0.25,
    "intensity": 40.0,
    "roofline_seconds": 0.375,
    "roofline_share": 0.75,
    "joules_per_image": 2.5,
    "launch_bound": 0.0,
}
NEEDS = {
    "images_per_second": ("batch", "seconds"),
    "macs_per_second": ("macs", "seconds"),
    "rate_share": ("macs", "seconds", "attainable_macs_per_second"),
    "bandwidth_share": ("moved_bytes", "seconds", "attainable_bytes_per_second"),
    "intensity": ("macs", "moved_bytes"),
    "roofline_seconds": ("macs", "moved_bytes", "attainable_macs_per_second", "attainable_bytes_per_second"),
    "roofline_share": ("macs", "moved_bytes", "seconds", "attainable_macs_per_second", "attainable_bytes_per_second"),
    "joules_per_image": ("batch", "energy_joules"),
    "launch_bound": ("seconds", "host_seconds"),
}
# How a description gives the unit of a column whose name ends so.
UNITS = {
    "_per_second": "per second",
    "_share": "share of",
    "intensity": "FLOPs per byte",
    "_seconds": "seconds of",
    "joules_per_image": "joules for each image",
    "_bound": "no unit",
}
NAMES = [metric.name for metric in metrics]


def test_every_metric_is_reckoned_by_hand() -> None:
    assert sorted(NAMES) == sorted(EXPECTED) == sorted(NEEDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_equals_what_was_reckoned(name: str) -> None:
    assert metrics[name].value(ROW) == EXPECTED[name]


@pytest.mark.parametrize(("name", "column"), [(name, column) for name in NAMES for column in ROW])
def test_a_metric_is_none_exactly_where_it_lacks_a_column(name: str, column: str) -> None:
    absent = {key: value for key, value in ROW.items() if key != column}
    expected = None if column in NEEDS[name] else EXPECTED[name]
    for row in (ROW | {column: None}, ROW | {column: math.nan}, ROW | {column: math.inf}, absent):
        assert metrics[name].value(row) == expected


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_divided_by_zero(name: str) -> None:
    found = [metrics[name].value(ROW | {column: 0}) for column in NEEDS[name]]
    assert all(value is None or math.isfinite(value) for value in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_the_table_does_as_well(name: str) -> None:
    import pandas as pd

    table = pd.DataFrame([ROW, dict.fromkeys(ROW)]).convert_dtypes()
    assert metrics[name].value(table.iloc[0]) == EXPECTED[name]  # type: ignore[arg-type]
    assert metrics[name].value(table.iloc[1]) is None  # type: ignore[arg-type]


def test_the_slower_of_products_and_traffic_is_the_roof() -> None:
    slow_memory = ROW | {"attainable_bytes_per_second": 600.0}
    assert metrics["roofline_seconds"].value(slow_memory) == 0.5
    assert metrics["roofline_share"].value(slow_memory) == 1.0


def test_a_share_may_exceed_one() -> None:
    fast = ROW | {"seconds": 0.0625}
    assert metrics["rate_share"].value(fast) == 6.0
    assert metrics["bandwidth_share"].value(fast) == 2.0


@pytest.mark.parametrize(("host", "bound"), [(0.25, 0.0), (0.5, 0.0), (0.75, 1.0)])
def test_a_case_is_launch_bound_where_the_host_takes_longer(host: float, bound: float) -> None:
    assert metrics["launch_bound"].value(ROW | {"host_seconds": host}) == bound


@pytest.mark.parametrize("name", NAMES)
def test_a_description_is_one_line_that_names_the_unit(name: str) -> None:
    units = [unit for ending, unit in UNITS.items() if name.endswith(ending)]
    description = metrics[name].description
    assert len(units) == 1 and units[0] in description
    assert "\n" not in description and "|" not in description


def test_metrics_need_no_heavy_package() -> None:
    code = "from vitbench.metric import metrics; import sys; assert len(list(metrics)) >= 9; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "pandas", "numpy", "scipy", "matplotlib"} & set(done.stdout.split())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_metrics_never_import_one_another(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    found += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert found and not [name for name in found if name.startswith("vitbench.metrics")]
