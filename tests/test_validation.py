"""Published speeds against the time model: tables read, constants found where they were planted, what was left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import documents
import numpy as np
import pytest
from test_speeds import LINE, NAME, put, run

from analysis import validate
from vitbench.devices import card
from vitbench.gpu import CONSTANTS, NAMES, seconds
from vitbench.knowledge import known
from vitbench.step import Part, Step, Trace
from vitbench.validation import traces
from vitbench.validation.fit import BASELINES, DATASHEET, OURS, Measured, Score, named
from vitbench.validation.kernels import Kernels
from vitbench.validation.speeds import Speed, Table, read
from vitbench.validation.traces import Wanted, family
from vitbench.validation.validation import validate as validated
from vitbench.work import Work

PLANTED = dict(zip(NAMES, (0.7, 0.6, 8e-6, 40, 25, 0.4, 0.3), strict=True))


def calls(count: int = 60, seed: int = 0) -> list[list[Work]]:
    """Calls of a few kernels each, each constant telling in some of them."""
    draw = np.random.default_rng(seed)
    kinds = ("product", "attention", "convolution", "depthwise", "pointwise", "copy")

    def work() -> Work:
        kind = kinds[draw.integers(len(kinds))]
        products, strided = kind in kinds[:4], kind == "copy" and draw.random() < 0.7
        inner = float(draw.choice([16, 32, 64, 256, 2048])) if products else 0
        macs = draw.lognormal(23, 1.5) / (20 if kind == "depthwise" else 1) if products else 0
        read, written = draw.lognormal(16, 2, 2)
        launches, serial = int(draw.integers(1, 20)), int(draw.integers(1000)) if kind == "pointwise" else 0
        looked = 0 if products else draw.lognormal(16, 2)
        return Work("any", kind, "float16", macs, read, written, inner, launches, strided, serial, looked)

    return [[work() for _ in range(draw.integers(1, 5))] for _ in range(count)]


FAMILIES = ("vit", "swin", "xcit")


def measured(name: str, seed: int, slower: str | None = None) -> Measured:
    """Seconds are those of the planted constants; of one family twice as many."""
    works = calls(seed=seed)
    table = Table(NAME.replace("rtx4090", name), name, 240, False, ())
    families = np.array([FAMILIES[n % 3] for n in range(len(works))])
    kernels = Kernels(works)
    times = kernels.seconds(card(name), PLANTED) * np.where(families == slower, 2, 1)
    macs = np.array([sum(work.macs for work in some) for some in works], float)
    return Measured(table, (), families, kernels, times, macs, macs / 64)


@pytest.mark.parametrize("constants", [PLANTED, {one.name: one.datasheet for one in CONSTANTS}])
def test_many_calls_at_once_take_what_each_takes(constants: dict[str, float]) -> None:
    works = [*calls(), []]
    together = Kernels(works).seconds(card("rtx4090"), constants)
    assert together == pytest.approx([seconds(some, card("rtx4090"), constants) for some in works])


def whole(*tables: Measured) -> list[np.ndarray]:
    return [np.ones(len(one.seconds), bool) for one in tables]


def test_planted_constants_are_found_on_two_cards() -> None:
    tables = measured("rtx3090", 1), measured("rtx4090", 2)
    found = named(OURS.fit(tables, whole(*tables)))
    assert found == pytest.approx(PLANTED, rel=0.05)


def test_a_constant_that_nothing_depends_on_is_left_where_it_starts() -> None:
    table = measured("rtx4090", 2)
    still = [[work._replace(strided=False) for work in some] for some in calls(seed=2)]
    table = replace(table, kernels=Kernels(still), seconds=Kernels(still).seconds(card("rtx4090"), PLANTED))
    found = named(OURS.fit([table], whole(table)))
    assert found == pytest.approx({**PLANTED, "strided": 0.8}, rel=0.05)


def test_a_constant_that_rows_no_longer_depend_on_stays_where_they_put_it() -> None:
    """These two are bound by arithmetic as the fit begins, and one by memory as it ends."""
    shapes = (1364236679.98, 4756929.67, 91544154.93), (10833917667.51, 98158273.38, 2555949.11)
    kernels = Kernels([[Work("mm", "product", "float16", *shape, inner=64)] for shape in shapes])
    times = np.array([0.000184377, 0.000174516])
    table = replace(measured("rtx4090", 1), kernels=kernels, seconds=times)
    assert OURS.tell(table, OURS.fit([table], whole(table))) == pytest.approx(times, rel=0.1)


def test_a_few_outliers_move_constants_little() -> None:
    table = measured("rtx4090", 2)
    table.seconds[:4] *= 5
    found = named(OURS.fit([table], whole(table)))
    assert all(found[name] == pytest.approx(PLANTED[name], rel=0.15) for name in ("compute", "memory"))


def test_a_family_is_never_told_by_its_own_times() -> None:
    tables = measured("rtx3090", 1, "xcit"), measured("rtx4090", 2, "xcit")
    told = OURS.without_family(tables[0], [tables[1]]) / tables[0].seconds
    odd = tables[0].families == "xcit"
    assert told[odd] == pytest.approx(0.5, rel=0.02)
    assert np.median(told[~odd]) > 0.9


def test_a_card_is_told_by_others_alone() -> None:
    slow, fast = measured("rtx3090", 1), measured("rtx4090", 2)
    slow.seconds[:] *= 3
    told = OURS.of_others(slow, [fast])
    assert told is not None and told / slow.seconds == pytest.approx(1 / 3, rel=0.02)
    assert OURS.of_others(slow, []) is None
    assert DATASHEET.of_others(slow, []) is not None  # which has nothing to fit


def test_one_family_alone_is_told_by_nothing() -> None:
    table = measured("rtx4090", 1)
    alone = Measured(table.table, (), np.full(60, "vit"), table.kernels, table.seconds, table.macs, table.outputs)
    assert np.isnan(OURS.without_family(alone)).all()
    assert Score.of(OURS.without_family(alone), alone.seconds) is None
    assert not np.isnan(DATASHEET.without_family(alone)).any()


def test_baselines_are_what_their_names_say() -> None:
    table, peak = measured("rtx4090", 1), card("rtx4090").peak("float16")
    of_peak, one_constant, _, linear = BASELINES
    assert of_peak.tell(table, np.array([])) == pytest.approx(2 * table.macs / peak)
    computes = [table.macs > 0]
    table.seconds[:] = np.maximum(2 * table.macs / (0.4 * peak), 1e-12)
    assert one_constant.fit([table], computes) == pytest.approx([0.4], rel=1e-3)
    table.seconds[:] = linear.tell(table, np.array([0.5, 0.3, 2e-3]))
    assert linear.tell(table, linear.fit([table], whole(table))) == pytest.approx(table.seconds, rel=0.02)


def test_the_printed_columns_tell_the_rows_that_have_them() -> None:
    printed = BASELINES[2]
    speeds = [Speed("vit", 224, n, 0.1, 1e9 if n > 1 else None, 1e6) for n in range(1, 61)]
    whole_ = measured("rtx4090", 1)
    table = replace(whole_, speeds=speeds, macs=whole_.macs * np.nan, outputs=whole_.outputs * np.nan)
    told, known = printed.tell(table, np.array([0.5, 0.3, 2e-3])), card("rtx4090")
    of_one = 2e9 / (0.5 * known.peak("float16")) + 2e6 / (0.3 * known.bandwidth)
    assert np.isnan(told[0]) and told[1:] == pytest.approx(2e-3 + np.arange(2, 61) * of_one)
    table.seconds[:] = np.where(np.isnan(told), 1, told)
    assert printed.tell(table, printed.fit([table], whole(table)))[1:] == pytest.approx(told[1:], rel=0.02)


def test_a_score_by_hand() -> None:
    times = np.array([1.0, 2, 4, 8, 16])
    found = Score.of(times * np.array([1.1, 0.8, 1, 1.3, 0.6]), times)
    assert found is not None
    assert (found.rows, found.median, found.rank) == (5, pytest.approx(0.2), pytest.approx(0.9))
    assert found.p90 == pytest.approx(0.3 + 0.6 * 0.1)
    one = Score.of(np.array([1.5, np.nan]), np.array([1.0, 1]))
    assert one == Score(1, 0.5, 0.5, None)


X = Part(0, 0, (2, 4, 8), (32, 8, 1), "float16", True)
W = X._replace(data=False)


@pytest.mark.parametrize(
    ("steps", "has"),
    [
        ([("attention", "scaled_dot_product_attention", (X, X, X))], True),
        ([("product", "bmm", (X, X)), ("reduction", "_softmax", (X,))], True),
        ([("product", "mm", (X, W)), ("reduction", "_softmax", (X,))], False),  # a softmax of logits
        ([("product", "bmm", (X, X))], False),  # linear attention
        ([("convolution", "convolution", (X, W))], False),
    ],
)
def test_what_has_softmax_attention_is_told_by_its_steps(
    steps: list[tuple[str, str, tuple[Part, ...]]], has: bool
) -> None:
    every = [Step(operator, kind, "float16", 1, 1, given, (X,)) for kind, operator, given in steps]
    assert Trace("source", None, 2, "inference", "amp", every, 0).attends is has


def test_families_are_files_of_timm() -> None:
    assert family("vit_base_patch16_224.augreg_in21k") == family("test_vit") == "vision_transformer"
    assert family("gone") is None


LINES = LINE, "test_convnext,5000.0,50.0,256,160,0.03,0.47", "test_vit2,900.0,22.0,256,160,0.04,0.48"


def test_the_command_from_a_table_to_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced by a worker, as the tables ran; what was traced is kept, so that the second table asks for none."""
    monkeypatch.setattr(traces, "WORKERS", 1)
    at, cache = run(tmp_path / "run"), tmp_path / "traces"
    words = [str(put(tmp_path, *LINES)), "--run", str(at), "--cache", str(cache)]
    assert validate.main(words) == 0
    out, err = capsys.readouterr()
    assert "traced 3 of 3 models" in err and "kernel by kernel" in out
    found = json.loads((at / validate.FILE).read_text())
    title = "make validate"
    assert set(found) == documents.keys(title)
    assert {*found["tables"][0], *found["constants"][0], *found["scores"][0], *found["rows"][0]} <= documents.named(
        title
    )
    (table,) = found["tables"]
    assert (table["card"], table["speeds"], table["with_attention"], table["untraced"]) == ("rtx4090", 3, 2, [])
    assert [(row["model"], row["attention"]) for row in found["rows"]] == [
        ("test_vit", True),
        ("test_vit2", True),
        ("test_convnext", False),
    ]
    assert all(row["predicted"]["family"] is None for row in found["rows"][:2])  # of one family
    assert found["rows"][2]["predicted"]["family"] > 0 and found["rows"][2]["predicted"]["card"] is None
    by = {(one["method"], one["left_out"]): one["score"] for one in found["scores"]}
    assert by["kernel by kernel", "family"] is None and by["FLOPs over peak", "family"]["rows"] == 2
    assert {path.name for path in (cache / traces.digest()).iterdir()} == {
        f"{line.partition(',')[0]}@160.pickle" for line in LINES
    }
    other = str(put(tmp_path, *LINES, name=NAME.replace("4090", "3090")))
    assert validate.main([other, *words, "--json"]) == 0
    out, err = capsys.readouterr()
    both = json.loads(out)
    assert not err and both == json.loads((at / validate.FILE).read_text())
    ours = [one["score"] for one in both["scores"] if one["method"] == "kernel by kernel" and one["left_out"] == "card"]
    assert [score["rows"] for score in ours] == [2, 2]  # each card from the other


def test_models_that_torch_cannot_trace_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = X._replace(shape=(2, 2, 4, 8), strides=(64, 32, 8, 1))
    step = Step("scaled_dot_product_attention", "attention", "float16", 10**9, 8, (x, x, x), (x,))
    trace = Trace("source", (160, 160), 2, "inference", "amp", [step], 0)
    monkeypatch.setattr(
        "vitbench.validation.validation.traces",
        lambda wanted, *_: {one: trace for one in wanted if one.model == "test_vit"},
    )
    table = read(put(tmp_path, *LINES, name=NAME.replace("pt240", "pt251")))
    found = validated([table], tmp_path, lambda *_: None)
    assert found["tables"][0]["untraced"] == ["test_convnext", "test_vit2"]
    ours = {one["left_out"]: one["score"] for one in found["scores"] if one["method"] == OURS.name}
    committed = known("rtx4090").constants
    told = seconds(trace.works(256), card("rtx4090"), committed)
    assert ours["table"]["median"] == pytest.approx(abs(told / 0.0205 - 1))  # by constants that never saw it
    assert ours["family"] is None and ours["card"] is None


def test_a_refused_trace_is_kept_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp", lambda _: None)  # a worker's own
    wanted = Wanted("gone", 160, False)
    (tmp_path / traces.digest()).mkdir()
    traces._keep(wanted, tmp_path / traces.digest())
    assert traces.traces([wanted], tmp_path, lambda *_: pytest.fail("was kept")) == {}
