"""Every fault is really done to a run, through the command that a user runs, and costs what README.md says.

`make faults` writes the table there from the tests below, once they have passed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import stories
from bench import Bench, copy_project
from fault_table import fault
from stories import Told

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the faults are done as Linux does")]

SIDE_BY_SIDE = 3  # stories: of two cores one would idle while a story waits


@pytest.fixture(scope="module")
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Future[Any]]]:
    """The stories of all tests that are selected, side by side."""
    project = copy_project(tmp_path_factory.mktemp("project"))
    marks = filter(None, (item.get_closest_marker("fault") for item in request.session.items))
    wanted = dict.fromkeys(mark.kwargs["story"] for mark in marks)
    homes = {story: tmp_path_factory.mktemp(story.__name__) for story in wanted}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {story: pool.submit(story, Bench(project, home).prepare()) for story, home in homes.items()}
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def told(request: pytest.FixtureRequest, begun: dict[Any, Future[Any]], record_property: Any) -> Told:
    """The fault of this test, done; with the number of records that it cost, which must be as its row says."""
    mark = request.node.get_closest_marker("fault")
    found: Told = begun[mark.kwargs["story"]].result()[mark.kwargs["name"]]
    record_property("records lost", found.lost())
    assert found.lost() == mark.args[2]
    return found


in_backend = partial(fault, stories.faulty_backends)
FRESH = "the case ends `crashed`; a fresh process goes on"
NO_TIME = "the case ends `wrong_result`, without a time"


@in_backend("memory", "a backend runs out of memory", "the case ends `out_of_memory`; the same process goes on")
def test_out_of_memory(told: Told) -> None:
    line = ended(told, "memory", "out_of_memory", "can't allocate memory")
    assert f"{stories.MEMORY}"[:4] in line["reason"]


@in_backend("segfault", "a backend segfaults", FRESH)
def test_a_segmentation_fault(told: Told) -> None:
    ended(told, "segfault", "crashed", "the process was ended by SIGSEGV")


@in_backend("abort", "a backend aborts", FRESH)
def test_an_abort(told: Told) -> None:
    ended(told, "abort", "crashed", "the process was ended by SIGABRT")


@in_backend("hang", "a backend hangs", "after `--case-limit` seconds, `timed_out`; a fresh process goes on")
def test_a_hang(told: Told) -> None:
    ended(told, "hang", "timed_out", f"no result within {stories.HANGS} seconds")


@fault(stories.worker_killed, "worker killed", "`kill -9` of the worker", "that pass ends `crashed`; another is made")
def test_a_killed_worker(told: Told) -> None:
    ended(told, "held", "crashed", "the process was ended by SIGKILL")


@fault(stories.stopped, "supervisor killed", "`kill -9` of the command", "given again, it goes on")
def test_a_killed_supervisor(told: Told) -> None:
    assert [outcome.code for outcome in told.outcomes] == [-9, 0]


@fault(stories.stopped, "Ctrl-C", "Ctrl-C", "given again, it goes on")
def test_ctrl_c(told: Told) -> None:
    stopped, resumed = told.outcomes
    assert (stopped.code, resumed.code) == (130, 0)
    assert "Stopped, every record kept. Go on with: python -m benchmarks --profile smoke" in stopped.out


@fault(stories.full_disk, "full disk", "the disk is full", "refused in one line; given space, it goes on")
def test_a_full_disk(told: Told) -> None:
    full, resumed = told.outcomes
    assert (full.code, resumed.code) == (2, 0)
    assert "No space left on device" in full.err and full.err.count("\n") == 1


@fault(stories.stopped, "torn", "the last line of records is torn", "it is cut off; its case is measured again")
def test_a_torn_line(told: Told) -> None:
    assert told.outcomes[0].code == 0


@fault(stories.stopped, "newer", "a record is of a newer schema", "refused in one line; the file stays as it is")
def test_a_newer_schema(told: Told) -> None:
    assert told.outcomes[0].code == 2
    assert "this vitbench reads up to" in told.outcomes[0].err and told.outcomes[0].err.count("\n") == 1
    assert told.after == told.before


@in_backend("nan", "a result holds NaN", NO_TIME)
def test_nan(told: Told) -> None:
    ended(told, "nan", "wrong_result", "largest relative error nan against float64")


@in_backend("wrong", "a result is 0.1 % off", NO_TIME)
def test_wrong_numbers(told: Told) -> None:
    ended(told, "wrong", "wrong_result", "largest relative error 0.001 against float64")


@in_backend("nothing", "a result is never written, where another backend's right one lay", NO_TIME)
def test_nothing_written(told: Told) -> None:
    ended(told, "nothing", "wrong_result", "largest relative error")


@fault(stories.stopped, "missing", "an optional package is missing", "counts of it are null and say why")
def test_a_missing_package(told: Told) -> None:
    assert told.outcomes[0].code == 0
    counts = [line["counts"] for line in told.lines if line["id"] in told.healthy and line["counts"]]  # once a case
    assert all(count["dispatch"]["macs"] for count in counts)
    said = {"macs": None, "uncounted": [], "reason": "fvcore is not installed: pip install fvcore"}
    assert [count["fvcore"] for count in counts] == [said] * len(told.healthy)


@fault(stories.stopped, "two", "two commands on one run folder", "the second is refused; the first is not disturbed")
def test_two_supervisors(told: Told) -> None:
    assert told.outcomes[0].code == 2
    assert "in use by another run" in told.outcomes[0].err and told.outcomes[0].err.count("\n") == 1


def ended(told: Told, backend: str, state: str, reason: str) -> dict[str, Any]:
    """The record after those that were there when the fault struck: the backend's, in that state, without a time."""
    line, (outcome,) = told.next, told.outcomes
    assert f".faulty.{backend}." in line["id"]
    assert (line["state"], line["seconds"]) == (state, None)
    assert reason in line["reason"]
    assert outcome.code == 1
    assert (f"{state}: {line['id']}" in outcome.out) == (state != "out_of_memory")
    return line
