"""The Pareto set of what fits a budget."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from vitbench import gpu
from vitbench.choice.budget import Budget, bytes_of, seconds_of
from vitbench.choice.choice import Asked, Choice, choose
from vitbench.choice.configurations import BATCHES, LARGEST, ROW, evaluated, programs
from vitbench.choice.document import as_json, command_of
from vitbench.choice.front import front, objectives
from vitbench.choice.target import Target, target
from vitbench.devices import card
from vitbench.ledger.program import ledger
from vitbench.model import models
from vitbench.refusal import Refusal
from vitbench.source import open_source
from vitbench.trace import trace

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def rtx4090() -> Target:
    return target("rtx4090")


@pytest.fixture(scope="module")
def latency(rtx4090: Target) -> float:
    """Twice what the fastest takes."""
    return float(2 * choose(Asked(Budget(1.0), (224, 384)), rtx4090).rows["seconds"].min())


@pytest.fixture(scope="module")
def small(rtx4090: Target, latency: float) -> Choice:
    return choose(Asked(Budget(latency, bytes_of("300MB")), (224, 384)), rtx4090)


@pytest.mark.parametrize(
    ("text", "seconds"), [("20ms", 0.02), ("0.02s", 0.02), ("1.5 s", 1.5), ("500us", 5e-4), ("1e-3s", 1e-3)]
)
def test_a_latency_is_told_with_its_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "size"), [("8GB", 8 * 10**9), ("8GiB", 8 * 2**30), ("500MB", 5 * 10**8)])
def test_a_memory_is_told_with_its_unit(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["20", "ms", "-20ms", "0ms", "20 GB", "1e999s", "²ms", "20m s", ""])
def test_what_is_no_latency_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match=r"expected such as 20ms or 0\.02s"):
        seconds_of(text)


@pytest.mark.parametrize("throughput", [False, True])
def test_the_front_is_what_nothing_dominates(throughput: bool) -> None:
    generator = np.random.default_rng(0)
    rows = np.zeros(400, ROW)
    for name in ("family", "image", "patch", "parameters", "bytes", "seconds"):  # few values: many ties
        rows[name] = generator.integers(1, 4, len(rows))
    rows["batch"] = 1
    kept = front(rows, throughput)
    assert 0 < len(kept) < len(rows)
    everything, best = objectives(rows, throughput), objectives(kept, throughput)
    for n, row in enumerate(rows):
        same = kept["family"] == row["family"]
        assert (best[:, same] <= everything[:, n, None]).all(axis=0).any()
    for n, row in enumerate(kept):
        same = kept["family"] == row["family"]
        assert (best[:, same] <= best[:, n, None]).all(axis=0).sum() == 1  # itself


def test_what_fits_is_within_its_bounds_and_on_the_front(small: Choice, rtx4090: Target, latency: float) -> None:
    assert len(small.rows) and (small.rows["seconds"] <= latency).all() and (small.rows["bytes"] <= 3e8).all()
    rows = evaluated(small.programs, rtx4090, (224, 384), (1,))
    assert small.configurations == len(rows)
    fitting = rows[(rows["seconds"] <= latency) & (rows["bytes"] <= 3e8)]
    assert small.fitting == len(fitting)
    best = objectives(small.rows, False)
    for n, row in enumerate(fitting):
        same = small.rows["family"] == row["family"]
        assert (best[:, same] <= objectives(fitting[n : n + 1], False)).all(axis=0).any()


def test_a_tighter_budget_fits_fewer(small: Choice, rtx4090: Target, latency: float) -> None:
    tighter = choose(Asked(Budget(0.75 * latency, 3 * 10**8), (224, 384)), rtx4090)
    assert 0 < tighter.fitting < small.fitting


def test_of_each_model_the_largest_image_is_shown(small: Choice) -> None:
    shown = small.largest()
    names = [small.programs[row["program"]].variant.name for row in small.rows]
    assert sorted({small.programs[row["program"]].variant.name for row in shown}) == sorted(set(names))
    assert len(shown) == len(set(names))
    for row in shown:
        own = small.rows[np.array(names) == small.programs[row["program"]].variant.name]
        assert row["image"] == own["image"].max()
    assert list(shown["parameters"]) == sorted(shown["parameters"], reverse=True)


def test_throughput_takes_the_batch_of_most_images_a_second(rtx4090: Target) -> None:
    bounds = Budget(0.05, 2 * 10**9)
    found = choose(Asked(bounds, (224, 288), throughput=True, families=["vit"]), rtx4090)
    rows = evaluated(found.programs, rtx4090, (224, 288), BATCHES)
    rows = rows[(rows["seconds"] <= 0.05) & (rows["bytes"] <= 2e9)]
    assert set(found.rows["batch"]) - {1}
    for row in found.rows:
        same = rows[(rows["program"] == row["program"]) & (rows["image"] == row["image"])]
        assert row["seconds"] / row["batch"] == (same["seconds"] / same["batch"]).min()


def test_a_row_takes_what_its_trace_takes(rtx4090: Target) -> None:
    found = choose(Asked(Budget(), (224, 224), families=["vit"]), rtx4090)
    names = [found.programs[row["program"]].variant.name for row in found.rows]
    row = found.rows[names.index("vit_ti_16")]
    seen = trace(open_source("vit_ti_16", (224, 224), eager=False), 1)
    seconds = gpu.seconds(seen.works(), card("rtx4090"), rtx4090.knowledge.constants)
    assert row["seconds"] == pytest.approx(seconds, rel=1e-9)
    assert command_of(found, row) == (
        "vitbench predict vit_ti_16 --device rtx4090 --image 224 --batch 1 --dtype amp --backend sdpa"
    )


def test_a_window_that_is_not_the_published_one_is_in_the_command(rtx4090: Target) -> None:
    found = choose(Asked(Budget(), (256, 384), families=["swin"]), rtx4090)
    for row in as_json(found)["rows"]:
        words = shlex.split(row["command"])
        published = {"swin_b_384": 12, "swin_l_384": 12}.get(row["model"], 7)
        window = int(words[words.index("--window") + 1]) if "--window" in words else published
        assert window == row["window"]
        assert row["image"] % 32 == 0 and row["window"] <= row["image"] // 16


def test_each_program_is_there_once() -> None:
    every = [(one.variant.model, one.variant.dim, one.variant.prefix, one.backend) for one in programs()]
    assert len(every) == len(set(every))
    named_so = {one.variant.name for one in programs() if one.window == 12}
    assert {"swin_b_384", "swin_l_384", "swin_t"} <= named_so and "swin_b" not in named_so


def test_the_bound_that_is_hit_is_that_of_what_the_other_leaves(rtx4090: Target) -> None:
    fastest = choose(Asked(Budget(latency=0.02)), rtx4090).rows["seconds"].min()
    with pytest.raises(Refusal, match=r"\(latency\)"):
        choose(Asked(Budget(0.99 * fastest, 10**10)), rtx4090)
    assert choose(Asked(Budget(1.01 * fastest, 10**10)), rtx4090).fitting


@pytest.mark.parametrize(
    ("device", "said"), [("rtx9090", "unknown device 'rtx9090'"), ("v100", "no known peak in bfloat16")]
)
def test_a_card_that_is_not_known_is_refused(device: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        target(device, "amp-bfloat16")


def test_this_cpu_is_told_by_its_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitbench.processor.name", lambda: "a CPU")
    monkeypatch.setattr("psutil.cpu_count", lambda logical: 2)
    with pytest.raises(Refusal, match=r"no run of this CPU \(a CPU, 2 cores\) is calibrated .*vitbench calibrate RUN"):
        target("here", results=tmp_path)
    found = json.loads((ROOT / "results/reference/xeon-2-cores/calibration.json").read_text())
    found["environment"] |= {"cpu": "a CPU", "cores": 2}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "calibration.json").write_text(json.dumps(found))
    here = target("here", results=tmp_path)
    assert (here.knowledge.level, here.dtype) == ("calibrated", "float32")
    chosen = choose(Asked(Budget(0.5), (224, 256), families=["vit"]), here)
    low, high = as_json(chosen)["rows"][0]["interval"]
    assert low < as_json(chosen)["rows"][0]["seconds"] < high
    with pytest.raises(Refusal, match="dtype 'amp' is not predicted on a CPU"):
        target("here", "amp", results=tmp_path)


def test_the_figure_has_a_panel_for_each_patch_and_names_the_models(small: Choice, tmp_path: Path) -> None:
    from vitbench.choice import figure

    panels = figure.draw(small).axes
    assert [panel.get_title() for panel in panels] == [f"patches of {n} pixels" for n in (4, 8, 14, 16, 32)]
    assert panels[0].get_ylabel() == "predicted time of an image alone (ms)"
    assert {text.get_text() for text in panels[-1].texts} & {"vit_ti_32", "vit_s_32"}  # of equal times one
    figure.write(small, str(tmp_path / "plan.svg"))
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")


def test_the_device_bounds_memory_whatever_is_asked(rtx4090: Target) -> None:
    assert choose(Asked(Budget(memory=10**12), (224, 256)), rtx4090).memory == rtx4090.memory_bytes


def test_the_most_that_can_be_asked_does_not_overflow() -> None:
    most = models["vit_g_8"], LARGEST, BATCHES[-1], "naive", "amp"
    many = ledger(most[0], np.array([LARGEST]), np.array([BATCHES[-1]]), *most[3:])
    one = ledger(*most)
    assert many.macs[0] == one.macs and many.peak_bytes[0] == one.peak_bytes
    assert all(np.all(row.bytes == other.bytes) for row, other in zip(many.works, one.works, strict=True))


def test_memory_that_is_not_known_bounds_nothing(rtx4090: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Target(**{**vars(rtx4090), "memory_bytes": None})
    assert choose(Asked(Budget(), (224, 256)), unknown).memory is None
