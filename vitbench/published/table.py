"""A published table of models, read: columns found by their names, numbers kept to the digit that was printed.

Nothing is counted here: `counts` does that, and `verdicts` compares.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from vitbench.refusal import Refusal

Image = tuple[int, int]  # pixels, height first
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
COUNTED = ("macs", "flops", "multadds", "madds", "maccs", "ops")
COUNTS: Mapping[str, int | None] = {  # what a column of counts is called, and its unit, where its name says it
    **{unit + word: UNITS[unit] for word in COUNTED for unit in "gmt"},
    **{word + unit: UNITS[unit] for word in COUNTED for unit in "gmtb"},
    **dict.fromkeys(COUNTED),
}
MODELS = ("model", "name", "modelname", "arch", "architecture", "network", "backbone", "variant")
IMAGES = ("imgsize", "imagesize", "image", "img", "resolution", "res", "inputsize", "inputresolution", "input", "size")
PARAMETERS = ("paramcount", "params", "parameters", "paramsm", "mparams", "numparams", "nparams", "param")
LONGEST = 40  # digits of a number that counts something
DROPPED_ZEROS = 0.2  # share of numbers that may end earlier than the rest: of digits at random, a tenth are 0


@dataclass(frozen=True)
class Row:
    """image: as printed, None where it is not. published, step: the number and one of its last digit, in `unit`.

    unit: None where neither column nor number names one.
    """

    model: str
    image: Image | None
    published: Decimal | None
    step: Decimal
    unit: int | None
    parameters: Decimal | None


@dataclass(frozen=True)
class Table:
    """columns: the header that was taken for each of model, count, image, parameters (None: there is none)."""

    name: str
    columns: Mapping[str, str | None]
    rows: Sequence[Row]


def read(path: Path) -> Table:
    """Raises Refusal where it is no table, and where no column names the models or counts them."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is no text; expected a CSV file") from error
    if not text:
        raise Refusal(f"{path} is empty; expected a CSV file with a line of column names")
    lines = text.splitlines()
    delimiter = max(",;\t|", key=lines[0].count)
    try:
        header, *body = [[cell.strip() for cell in line] for line in csv.reader(lines, delimiter=delimiter) if line]
    except csv.Error as error:
        raise Refusal(f"{path} is no CSV file: {error}") from error
    columns = _columns(path, header)
    if not body:
        raise Refusal(f"{path} has no rows below its column names; expected one a model")
    cells = [dict(zip(header, line, strict=False)) for line in body]

    def column(role: str) -> list[str]:
        return [row.get(columns[role] or "", "") for row in cells]

    unit = COUNTS[_plain(columns["count"] or "")]
    numbers = [number(text, unit) for text in column("count")]
    steps = printed_steps([value for value, _ in numbers])
    texts = zip(column("model"), column("image"), column("parameters"), strict=True)
    rows = [
        Row(model, _image(image), value, step, unit, number(parameters)[0])
        for (model, image, parameters), (value, unit), step in zip(texts, numbers, steps, strict=True)
    ]
    return Table(path.name, columns, rows)


def number(text: str, unit: int | None = None) -> tuple[Decimal | None, int | None]:
    """What is printed, 4.5 or 4.5G or 1,016.7 MMACs, and its unit: its own, else that of its column."""
    text = re.sub(r"^(~?\d+),(?!\d{3}(?:\D|$))", r"\1.", text.lower())  # a decimal comma
    match = re.match(r"~?(\d[\d,]*(?:\.\d*)?(?:e[+-]?\d+)?)\s*([a-z]*)", text)
    if match is None or len(match[1]) > LONGEST or re.search(r"e[+-]?\d{4}", match[1]):
        return None, unit
    value = Decimal(match[1].replace(",", ""))
    if abs(value.adjusted()) > LONGEST:
        return None, unit
    own = UNITS.get(match[2]) if match[2] in UNITS else COUNTS.get(match[2])
    return value, own if match[2] and own else unit


def printed_steps(values: Sequence[Decimal | None]) -> list[Decimal]:
    """One of the last digit that was printed of each.

    A program that writes 49.40 as 49.4 drops a zero in ten, so then the finest of a column holds for all; where more
    end early, they were rounded each on its own.
    """
    last = [_last(value) for value in values if value]
    finest = min(last, default=0)
    own = sum(one > finest for one in last) > DROPPED_ZEROS * len(last)
    return [Decimal(1).scaleb(_last(value) if own and value else finest) for value in values]


def _last(value: Decimal) -> int:
    """The power of ten of the last digit. Zeros after the point were printed on purpose, those of 28000000 fill up."""
    last = value.as_tuple().exponent
    if last == 0:
        last = value.normalize().as_tuple().exponent
    assert isinstance(last, int)  # of a number
    return last


def _image(text: str) -> Image | None:
    """224, 224.0, 224x288, (3, 224, 224)."""
    sides = [int(side[:9]) for side in re.findall(r"\d+", re.sub(r"\.0+\b", "", text))][-2:]
    return (sides[0], sides[-1]) if sides and all(sides) else None


def _plain(header: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", header.lower()).removeprefix("infer")


def _columns(path: Path, header: Sequence[str]) -> dict[str, str | None]:
    def named(names: Iterable[str]) -> str | None:
        return next((one for name in names for one in header if _plain(one) == name), None)

    found = {"model": named(MODELS), "count": named(COUNTS), "image": named(IMAGES), "parameters": named(PARAMETERS)}
    expected = {"model": "of model names (model, name, arch)", "count": "of counts (gmacs, macs, flops, gflops)"}
    for role, words in expected.items():
        if found[role] is None:
            raise Refusal(f"{path} has no column {words}; it has {', '.join(header)}: rename one")
    return found
