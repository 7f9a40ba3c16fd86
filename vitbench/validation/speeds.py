"""Published speeds, read: timm's tables of images/s, as its benchmark script writes and names them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitbench.devices import card
from vitbench.refusal import Refusal

NAMED = "benchmark-infer-amp-nchw-pt240-cu124-rtx4090[-dynamo].csv"
COLUMNS = ("model", "infer_step_time", "infer_batch_size", "infer_img_size", "infer_gmacs", "infer_macts")
FUSED = 200  # torch 2.0 brought fused attention
RAISED = 250  # torch 2.5 has written-out attention in float32
LEAST, MOST = 1e-9, 1_000_000  # of a number, of pixels or images: what is beyond was not measured
SHARED = 270  # torch 2.7 compiles masks that all images share as they are


@dataclass(frozen=True)
class Speed:
    """seconds: of one batch. macs: of one image, activations: output elements of one, both as printed; None: not."""

    model: str
    image: int
    batch: int
    seconds: float
    macs: float | None
    activations: float | None


@dataclass(frozen=True)
class Table:
    """torch: its version, 240 for 2.4.0. eager: attention is written out, since that torch had no fused one."""

    name: str
    card: str
    torch: int
    compiled: bool
    speeds: Sequence[Speed]

    @property
    def eager(self) -> bool:
        return self.torch < FUSED

    @property
    def halves(self) -> bool:
        """Whether attention without a fused kernel stays in half precision."""
        return self.torch < RAISED

    @property
    def whole_masks(self) -> bool:
        """Whether a compiled program writes a mask that all images share out for each."""
        return self.torch < SHARED


def read(path: Path) -> Table:
    """Raises Refusal where it is no such table. Rows without a speed are left out."""
    match = re.search(r"-infer-amp-nchw-pt(\d+)-cu\d+-([\w-]+?)(-dynamo)?\.csv$", path.name)
    if match is None:
        raise Refusal(f"{path.name} does not name torch and card, in float16 and NCHW; expected a name such as {NAMED}")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refusal(f"{path} cannot be read: {error}") from error
    if not lines or (lacking := [name for name in COLUMNS if name not in lines[0]]):
        raise Refusal(
            f"{path} lacks columns {', '.join(lacking) if lines else 'and rows'}; expected {', '.join(COLUMNS)}"
        )
    known = card(match[2]).name
    measured = [line for line in lines if line["model"] and line["infer_step_time"] and line["infer_batch_size"]]
    return Table(path.name, known, int(match[1]), bool(match[3]), [_speed(path.name, line) for line in measured])


def _speed(table: str, line: dict[str, str]) -> Speed:
    def number(name: str) -> float:
        try:
            value = float(line[name])
        except (TypeError, ValueError):
            value = math.nan
        if not LEAST < value < 1 / LEAST:
            raise Refusal(f"{table}, {line['model']}: {name} is {line[name]!r}; expected a number above 0")
        return value

    def whole(name: str) -> int:
        value = number(name)
        if value % 1 or value > MOST:
            raise Refusal(f"{table}, {line['model']}: {name} is {line[name]!r}; expected a whole number up to {MOST:,}")
        return int(value)

    def printed(name: str, unit: float) -> float | None:
        return number(name) * unit if (line[name] or "").strip("0.") else None  # 0.00 is one too small to be printed

    return Speed(
        line["model"],
        whole("infer_img_size"),
        whole("infer_batch_size"),
        number("infer_step_time") / 1e3,
        printed("infer_gmacs", 1e9),
        printed("infer_macts", 1e6),
    )
