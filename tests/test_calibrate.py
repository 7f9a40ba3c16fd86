"""Constants from measured programs: found again where they were planted, and nothing told by its own measurement."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from vitbench.calibrate.document import FILE, read
from vitbench.calibrate.fit import at_an_end, by_halves, by_sweeps, fit, predicted
from vitbench.calibrate.programs import LEAST, demanded, traced
from vitbench.case import Case
from vitbench.cli import main
from vitbench.cpu import CONSTANTS, NAMES, Constants
from vitbench.operator import parse_operator
from vitbench.refusal import Refusal
from vitbench.shape import Shape

REFERENCE = Path(__file__).resolve().parents[1] / "results" / "reference" / "xeon-2-cores"
PLANTED = dict(zip(NAMES, (8e10, 3e9, 6e9, 2e10, 1e9, 2e-5), strict=True))


def programs(count: int = 80, seed: int = 0) -> np.ndarray:
    """Demands that take some milliseconds of each constant."""
    draw = np.random.default_rng(seed)
    rates = [PLANTED[one.name] if one.unit != "s" else 1 / PLANTED[one.name] for one in CONSTANTS]
    return draw.lognormal(sigma=1.5, size=(count, len(CONSTANTS))) * 1e-3 * np.array(rates)


def test_planted_constants_are_found_through_noise_and_outliers() -> None:
    demands, draw = programs(), np.random.default_rng(1)
    seconds = predicted(demands, PLANTED) * draw.lognormal(sigma=0.03, size=len(demands))
    seconds[:4] *= 4
    found = fit(demands, seconds)
    assert all(found[name] == pytest.approx(value, rel=0.15) for name, value in PLANTED.items())
    assert not any(at_an_end(found).values())


def test_a_constant_beyond_its_range_is_called_so() -> None:
    demands = programs()
    absurd: Constants = {**PLANTED, "launch_seconds": 1.0}
    ended = at_an_end(fit(demands, predicted(demands, absurd)))
    assert ended["launch_seconds"]


def test_the_same_program_is_never_in_both_halves() -> None:
    demands = np.repeat(programs(30), 2, axis=0)
    numbers = [n // 2 for n in range(60)]
    logs = by_halves(demands, predicted(demands, PLANTED), numbers, halves=5).log_errors
    known = ~np.isnan(logs)
    assert (known[:, ::2] == known[:, 1::2]).all()
    assert (known.sum(axis=1) == 30).all() and (known.sum(axis=0) == 5).all()


def test_errors_are_those_of_the_measurements_held_out() -> None:
    demands = programs()
    seconds = predicted(demands, PLANTED)
    held_out = by_halves(demands, seconds, range(len(demands)), halves=3)
    exact = held_out.errors()
    assert exact is not None and max(exact) < 1e-3
    seconds[::2] *= 1.5
    found = by_halves(demands, seconds, range(len(demands)), halves=3).errors(np.arange(len(demands)) % 2 == 0)
    assert found is not None and 0.1 < found[0] < 0.5


def test_a_case_is_told_by_other_sweeps_alone() -> None:
    demands = programs(90)
    seconds = predicted(demands, PLANTED)
    sweeps = [("first",)] * 40 + [("second",)] * 40 + [("first", "second")] * 10
    seconds[40:] *= 3
    logs = by_sweeps(demands, seconds, range(90), sweeps, least=24).log_errors
    assert np.nanmedian(logs[:, 40:80]) == pytest.approx(np.log(3), abs=0.05)
    assert np.nanmedian(logs[:, :40]) == pytest.approx(-np.log(3), abs=0.05)
    assert np.isnan(logs[:, 80:]).all()  # nothing shares no sweep with these
    same = [0] * 80 + list(range(1, 11))  # all of a sweep is one program, which the other sweep holds too
    assert by_sweeps(demands, seconds, same, sweeps, least=24).errors() is None


def case(backend: str, operator: str = "global", mode: str = "inference", scope: str = "core") -> Case:
    return Case(parse_operator(operator), Shape(2, 7, 7, 64, 2), backend, scope=scope, mode=mode)


def test_a_case_is_traced_as_torch_would_run_it_on_the_cpu() -> None:
    fused = [step.kind for step in traced(case("sdpa")).steps]
    assert fused == ["attention"]
    apart = traced(case("sdpa.math")).steps
    assert sum(step.kind == "product" for step in apart) == 2 and all(step.kind != "attention" for step in apart)
    training = [step.kind for step in traced(case("sdpa", mode="training")).steps]
    assert training.count("attention") == 2


def test_fused_attention_computes_whole_tiles() -> None:
    macs, exponentials, *_ = demanded(case("sdpa"))  # 49 queries and keys in tiles of 16
    assert exponentials == pytest.approx(2 * 2 * 64 * 64)
    assert macs == pytest.approx(2 * 32 * exponentials)
    assert demanded(case("naive"))[0] == 2 * 32 * 2 * 2 * 49 * 49


def run(folder: Path, lines: int | None = None) -> Path:
    """A copy of the committed run, or of its first records."""
    folder.mkdir()
    for name in ("run.json", "environment.json"):
        copy(REFERENCE / name, folder)
    records = (REFERENCE / "records.jsonl").read_text().splitlines(keepends=True)
    (folder / "records.jsonl").write_text("".join(records[:lines]))
    return folder


def test_too_few_programs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(run(tmp_path / "run", 20))]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("vitbench: tracing")]
    assert f"expected {LEAST} or more" in line and "make bench" in line
    assert not (tmp_path / "run" / FILE).exists()


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(tmp_path)]) == 2
    assert "holds no run.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"constants": [], "times": [], "log_error_quantiles": {}}'], ids=range(4)
)
def test_a_damaged_calibration_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(Refusal, match=r"damaged; write it anew: vitbench calibrate"):
        read(tmp_path)


def test_a_missing_calibration_is_refused_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"vitbench calibrate"):
        read(tmp_path)
