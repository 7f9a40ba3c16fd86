"""A published table: what is read of it, which convention is inferred, which number is wrong and why."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vitbench.cli import main
from vitbench.published.counts import Recount
from vitbench.published.table import Row, number, printed_steps, read
from vitbench.published.verdicts import CONVENTIONS, convention_of, judged, unit_of

FUSED = "the fused attention products are missing"
VIT = Recount((224, 224), macs=1000, fused=100, attention=100, norms=20, parameters=5000)
SWIN = Recount((224, 224), macs=2000, attention=300, norms=50, parameters=6000, constant=70)
HALO = Recount((256, 256), macs=3000, einsum=400, norms=80, worded=500, recurrent=600)


def rows(*numbers: int, unit: int | None = 1) -> list[tuple[Row, Recount]]:
    return [
        (Row(str(n), one.image, Decimal(n), Decimal(1), unit, None), one)
        for n, one in zip(numbers, (VIT, SWIN, HALO), strict=True)
    ]


@pytest.mark.parametrize(
    ("numbers", "convention"),
    [
        ((1000, 2000, 3000), "MACs"),
        ((2000, 4000, 6000), "FLOPs"),
        ((1020, 2050, 3080), "MACs + norms"),
        ((2040, 4100, 6160), "FLOPs + norms"),
        ((1000, 2000, 2600), "MACs - einsum"),
        ((900, 1700, 2500), "MACs"),  # every row lacks something
        ((920, 1750, 3080), "MACs + norms"),
        ((1800, 4000, 7), "FLOPs"),
    ],
)
def test_the_convention_is_the_one_that_most_rows_follow(numbers: Sequence[int], convention: str) -> None:
    assert convention_of(rows(*numbers)).name == convention


@pytest.mark.parametrize(
    ("published", "one", "convention", "reason"),
    [
        (1000, VIT, "MACs", None),
        (900, VIT, "MACs", FUSED),
        (1800, VIT, "FLOPs", FUSED),
        (1700, SWIN, "MACs", "the attention products are missing"),
        (1930, SWIN, "MACs", "the products of weights with weights (position biases) are missing"),
        (2580, HALO, "MACs + norms", "the convolutions with padding='same' are missing"),
        (2400, HALO, "MACs", "the products of recurrent layers are missing"),
        (2000, VIT, "MACs", "it is in FLOPs, two a MAC"),
        (1000, VIT, "FLOPs", "it is in MACs, multiply-accumulates"),
        (920, VIT, "MACs", f"{FUSED}; it is in {CONVENTIONS[2].name}, {CONVENTIONS[2].line}"),
        (999, VIT, "MACs", "another model by that name: its parameters are 7 in the table, 5,000 now"),
        (777, HALO, "MACs", None),
    ],
)
def test_the_reason_of_a_wrong_number(published: int, one: Recount, convention: str, reason: str | None) -> None:
    row = Row("x", one.image, Decimal(published), Decimal(1), 1, Decimal(7) if one is VIT else None)
    made = judged(row, one, next(found for found in CONVENTIONS if found.name == convention))
    another = bool(reason) and "parameters" in str(reason)
    assert made.verdict == ("right" if published == made.exact else "unknown" if another else "wrong")
    assert made.reason == reason


def test_a_number_is_right_within_half_of_its_last_digit_alone() -> None:
    def verdict(published: str) -> tuple[str, str | None]:
        row = Row("x", None, Decimal(published), Decimal("0.1"), 1000, None)
        made = judged(row, Recount(None, macs=4460), CONVENTIONS[0])
        return made.verdict, made.reason

    assert verdict("4.5") == ("right", None)
    assert verdict("4.4") == ("wrong", "it would be right if cut off, not rounded")
    assert verdict("4.6") == ("wrong", None)


@pytest.mark.parametrize(("unit", "numbers"), [(1, (1000, 2000, 3000)), (10**6, (1e9, 2e9, 3e9))])
def test_the_unit_of_a_column_that_names_none_is_that_of_the_counts(unit: int, numbers: Sequence[float]) -> None:
    pairs = rows(1000, 2000, 3000, unit=None)
    scaled = [(row, Recount(None, macs=int(n))) for (row, _), n in zip(pairs, numbers, strict=True)]
    assert unit_of(scaled) == unit


@pytest.mark.parametrize(
    ("printed", "steps"),
    [
        (["49.40", "4.51", "17.56"], ["0.01"] * 3),
        (["49.4", *["4.51"] * 9], ["0.01"] * 10),  # a zero that a program dropped
        (["4.5", "8.7", "17.564", "4.491"], ["0.1", "0.1", "0.001", "0.001"]),
        (["4500000000", "1253683201"], ["100000000", "1"]),
    ],
)
def test_the_last_printed_digit(printed: Sequence[str], steps: Sequence[str]) -> None:
    assert printed_steps([Decimal(text) for text in printed]) == [Decimal(step) for step in steps]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("4.5", "4.5", None),
        ("4.5G", "4.5", 10**9),
        ("4.5 tokens", "4.5", None),
        ("4.5e3", "4500", None),
        ("1,016.7 MMACs", "1016.7", 10**6),
        ("1,82", "1.82", None),
        ("4,11 GMACs", "4.11", 10**9),
        ("28,000,000", "28000000", None),
        ("1e999999999", None, None),
        ("9" * 5000, None, None),
        ("", None, None),
        ("-", None, None),
    ],
)
def test_a_number_and_its_unit(text: str, value: str | None, unit: int | None) -> None:
    assert number(text) == (value and Decimal(value), unit)


@pytest.mark.parametrize(
    ("header", "cells", "image", "unit"),
    [
        ("name;FLOPs (G);Resolution", "swin_t;4.5;224x288", (224, 288), 10**9),
        ("Arch,Mult-Adds,input_size", 'swin_t,4.5,"(3, 224, 224)"', (224, 224), None),
        ("model\tgflops", "swin_t\t4.5", None, 10**9),
        ("model,train_gmacs,macs_m,infer_img_size", "swin_t,9,4.5,224.0", (224, 224), 10**6),
    ],
)
def test_columns_are_found_by_name(header: str, cells: str, image: Any, unit: int | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n{cells}\n")
    (row,) = read(tmp_path / "t.csv").rows
    assert (row.model, row.published, row.image, row.unit) == ("swin_t", Decimal("4.5"), image, unit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty; expected a CSV file"),
        (b"\xff\xfe\x00", "is no text"),
        (b"model,gmacs\n", "has no rows below its column names"),
        (
            b"model,speed\nx,1\n",
            "has no column of counts (gmacs, macs, flops, gflops); it has model, speed: rename one",
        ),
        (b"net,gmacs\nx,1\n", "has no column of model names (model, name, arch); it has net, gmacs: rename one"),
    ],
)
def test_what_is_no_such_table_is_refused(
    text: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    assert main(["audit", "--table", str(tmp_path / "t.csv")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_table_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--table", "/nowhere.csv"]) == 2
    assert "/nowhere.csv" in capsys.readouterr().err
