"""The roofline of cases that were made up, so that every figure in it is known."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.load import Run
from analysis.studies.roofline import Roofline
from analysis.study import Answer, studies
from vitbench.metric import metrics

RATE, BANDWIDTH = 50e9, 10e9  # MACs and bytes a second: the lines meet at 10 FLOPs a byte
MACS = 100e9  # 2 s at the rate


def case(name: str, seconds: float | None, intensity: float = 100.0, **values: Any) -> dict[str, Any]:
    """A row whose 95 % interval is a tenth to either side."""
    row = {
        "id": name,
        "backend": name.partition("/")[0],
        "batch": 1,
        "dtype": "float32",
        "device": "cpu",
        "scope": "layer",
        "seconds": seconds,
        "low": None if seconds is None else 0.9 * seconds,
        "high": None if seconds is None else 1.1 * seconds,
        "macs": MACS,
        "moved_bytes": 2 * MACS / intensity,
        "attainable_macs_per_second": RATE,
        "attainable_bytes_per_second": BANDWIDTH,
        "energy_joules": None,
        "host_seconds": None,
    } | values
    return row | {metric.name: metric.value(row) for metric in metrics}


FAR, HALF, NEAR = case("naive/far", 20.0), case("naive/half", 4.0), case("sdpa.flash/near", 2.5, scope="core")
SLANTED = case("naive/slanted", 5.0, intensity=5.0)  # 4 s at the bandwidth
CACHED = case("naive/cached", 2.0, intensity=5.0)
FASTER = case("sdpa/faster", 1.6)


def run_of(cases: pd.DataFrame) -> Run:
    return Run(Path(), cases, {}, {}, {})


def answer(*rows: dict[str, Any]) -> Answer:
    found = Roofline().answer(run_of(pd.DataFrame(rows)))
    assert found is not None
    return found


def test_it_is_found_among_the_studies() -> None:
    assert studies["roofline"].place == 90


def test_the_table_has_a_row_for_each_backend() -> None:
    table = answer(FAR, HALF, SLANTED, NEAR).table
    assert list(table) == [
        *("backend", "cases", "median share of the roofline"),
        *("best", "nearest case", "worst", "farthest case"),
    ]
    assert table.to_numpy().tolist() == [
        ["naive", 3, "50.0%", "80.0%", "naive/slanted", "10.0%", "naive/far"],
        ["sdpa.flash", 1, "80.0%", "80.0%", "sdpa.flash/near", "80.0%", "sdpa.flash/near"],
    ]


def test_the_sentence_gives_the_figures() -> None:
    assert answer(FAR, HALF, NEAR).sentence == (
        "The median of 3 reaches 50.0% of the roofline, the farthest 10.0% (naive/far), "
        "the nearest 80.0% (sdpa.flash/near). "
        "Attainable here: 100 GFLOP/s in float32, and 10.0 GB/s. "
        "Bandwidth sets the roof of none of them, the rate of products that of the others."
    )
    assert "Bandwidth sets the roof of 1 of them" in answer(FAR, SLANTED).sentence


def test_points_above_a_line_are_explained() -> None:
    sentence = answer(FAR, CACHED, FASTER).sentence
    assert "1 lies above the slanted line: the caches are warm, and bytes found in a cache do not wait" in sentence
    assert sentence.endswith("1 lies above the flat line, which is the best product seen and no limit.")
    both = answer(CACHED, CACHED | {"id": "again"}, FASTER, FASTER | {"id": "again"}).sentence
    assert "2 lie above the slanted line" in both and "2 lie above the flat line" in both


def test_a_cold_device_is_not_said_to_be_warm() -> None:
    sentence = answer(FAR | {"device": "cuda"}, CACHED | {"device": "cuda"}).sentence
    assert "1 lies above the slanted line" in sentence and "warm" not in sentence


def test_what_was_not_measured_is_left_out() -> None:
    unknown = case("flex/unknown", 1.0, dtype="float16", attainable_macs_per_second=None)
    found = answer(FAR, case("flex/crashed", None), unknown)
    assert found.sentence.startswith("The median of 1 reaches 10.0%")
    assert list(found.table["backend"]) == ["naive"]


@pytest.mark.parametrize("column", ["attainable_macs_per_second", "attainable_bytes_per_second"])
def test_without_attainable_rates_there_is_no_answer(column: str) -> None:
    rows = [case("naive/far", 20.0, **{column: nothing}) for nothing in (None, math.nan)]
    assert Roofline().answer(run_of(pd.DataFrame(rows))) is None
    for lacking in (column, "roofline_share"):
        assert Roofline().answer(run_of(pd.DataFrame([FAR]).drop(columns=lacking))) is None
    assert Roofline().answer(run_of(pd.DataFrame([FAR]).iloc[:0])) is None


def test_each_dtype_has_its_panel_with_its_own_roof() -> None:
    half = case("naive/half", 1.0, dtype="bfloat16", attainable_macs_per_second=4 * RATE)
    panels = answer(FAR, HALF, half).figure.axes
    assert [panel.get_title() for panel in panels] == ["float32, cpu: 2 measured", "bfloat16, cpu: 1 measured"]
    assert [[words.get_text() for words in panel.texts] for panel in panels] == [
        ["100 GFLOP/s", "10.0 GB/s"],
        ["400 GFLOP/s", "10.0 GB/s"],
    ]
    for panel, ridge, flat in zip(panels, (10.0, 40.0), (100e9, 400e9), strict=True):
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        assert "FLOPs per byte" in panel.get_xlabel() and "FLOP/s (2 x MACs" in panel.get_ylabel()
        roof = panel.lines[0]
        assert list(roof.get_xdata()) == pytest.approx([5.0, ridge, 200.0])
        assert list(roof.get_ydata()) == pytest.approx([50e9, flat, flat])


def test_a_point_stands_at_twice_the_macs_with_its_interval() -> None:
    (panel,) = answer(HALF).figure.axes
    point = panel.lines[-1]
    assert (list(point.get_xdata()), list(point.get_ydata())) == ([100.0], [2 * MACS / 4.0])
    ((_, low), (_, high)) = panel.collections[0].get_segments()[0]
    assert (low, high) == (pytest.approx(2 * MACS / 4.4), pytest.approx(2 * MACS / 3.6))


def test_the_roof_is_whole_where_every_case_is_on_one_side_of_it() -> None:
    for intensity in (1.0, 1000.0):
        (panel,) = answer(case("naive/one", 100.0, intensity=intensity)).figure.axes
        edges = list(panel.lines[0].get_xdata())
        assert edges == sorted(edges) and edges[0] < intensity < edges[-1]


def test_families_are_colours_and_scopes_are_marks() -> None:
    figure = answer(FAR, NEAR, FASTER).figure
    (panel,) = figure.axes
    points = {(line.get_marker(), line.get_color()) for line in panel.lines[2:]}
    assert len(points) == 3 and len({color for _, color in points}) == 2 and {mark for mark, _ in points} == {"o", "^"}
    (legend,) = figure.legends
    names = [words.get_text() for words in legend.get_texts()]
    assert names == ["naive", "sdpa", "core", "layer", "attainable", "bandwidth alone"]
    picture = BytesIO()
    figure.savefig(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG")
