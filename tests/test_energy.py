"""Joules of a call are those of the counter between two of its steps, or none with the reason."""

from __future__ import annotations

import re

import fake_nvml
import pytest
from fake_nvml import Ask, card, is_a_sentence

from vitbench.measure import energy, telemetry

ask, libraries = fake_nvml.ask, fake_nvml.libraries  # fixtures, which pytest finds by these names
# A GPU with a queue: calls return at once and take their seconds one after another, on a clock that no other process
# moves. Gives joules, reason and the most seconds that were ever queued.
LAUNCH = 1e-5  # seconds of a call on the host
QUEUE = """
now, free, most = 0.0, 0.0, 0.0
def wait(until):
    global now
    now = max(now, until)
    os.environ["FAKE_SECONDS"] = repr(now)
def call():
    global free, most
    wait(now + {launch})
    free = max(free, now) + {seconds}
    most = max(most, free - now)
def synchronize():
    wait(free)
time.perf_counter = lambda: now
joules, reason = energy.joules(call, "GPU-a", synchronize, {least})
answer = [joules, reason, most]
"""


def queue(seconds: float, least: float) -> str:
    return QUEUE.format(seconds=seconds, least=least, launch=LAUNCH)


def test_joules_of_a_short_call_are_watts_times_seconds(ask: Ask) -> None:
    planted = card("GPU-a", energy=400_000)
    joules, reason, queued = ask(planted, queue(seconds=0.001, least=0.95))
    assert reason is None
    assert joules == pytest.approx(400 * 0.001, rel=2 * energy.BATCH_SECONDS / 0.95)
    assert queued < 5 * energy.BATCH_SECONDS  # a queue without end would outlast least_seconds by far


def test_joules_of_a_call_longer_than_a_step_are_within_a_step(ask: Ask) -> None:
    planted = card("GPU-a", energy=250_000)
    joules, reason, _ = ask(planted, queue(seconds=0.17, least=0.6))
    assert reason is None
    assert joules == pytest.approx(250 * 0.17, rel=0.1 / 0.6)


def test_a_counter_that_stands_still_is_no_energy_of_zero(ask: Ask) -> None:
    planted = card("GPU-a", energy=0)
    joules, reason = ask(planted, queue(seconds=0.001, least=0.3))[:2]
    assert joules is None
    assert is_a_sentence(reason) and "stands still at 5000000 mJ" in reason


def test_a_counter_that_goes_back_gives_no_energy(ask: Ask) -> None:
    planted = card("GPU-a", energy=250_000, energy_back=1)
    joules, reason = ask(planted, queue(seconds=0.001, least=0.2))[:2]
    assert joules is None
    assert is_a_sentence(reason) and "went back" in reason


def test_a_gpu_lost_on_the_way_gives_no_energy_and_leaves_nothing_queued(ask: Ask) -> None:
    planted = card("GPU-a", energy=250_000, energy_questions=30)
    joules, reason, _, queued = ask(planted, f"{queue(seconds=0.001, least=0.5)}\nanswer.append(free - now)")
    assert joules is None
    assert is_a_sentence(reason) and "GPU is lost" in reason
    assert queued <= 0


@pytest.mark.parametrize(
    ("planted", "uuid", "says"),
    [
        ("", None, "no GPU: NVML knows NVIDIA GPUs alone"),
        (card("GPU-a"), "GPU-z", "no GPU GPU-z: Not Found"),
        (card("GPU-a", handle="!15"), "GPU-a", "GPU-a: GPU is lost"),
        ("GPU-a handle 1\n", "GPU-a", "TotalEnergyConsumption.*Not Supported"),
        ("MIG-a handle 1\n", "MIG-a", "TotalEnergyConsumption.*Not Supported"),
        ("MIG-a handle !4\n", "MIG-a", "no GPU MIG-a: Insufficient Permissions"),
    ],
)
def test_where_no_counter_can_be_read_there_is_one_reason(ask: Ask, planted: str, uuid: str | None, says: str) -> None:
    joules, reason = ask(planted, f"answer = energy.joules(int, {uuid!r}, int)")
    assert joules is None and is_a_sentence(reason)
    assert re.search(says, reason)


@pytest.mark.parametrize(
    ("first", "library"),
    [
        ("sys.modules['pynvml'] = None", "new"),
        ("open(os.environ['FAKE_NVML'], 'w').write('driver init !9')", "new"),
        ("", "broken"),
    ],
    ids=["no binding", "no driver", "no library"],
)
def test_without_nvml_the_reason_is_that_of_its_figures(ask: Ask, first: str, library: str) -> None:
    code = f"{first}\nanswer = [telemetry.read('GPU-a'), *energy.joules(int, 'GPU-a', int)]"
    found, joules, reason = ask(card("GPU-a"), code, library)
    assert joules is None and found == {"reason": reason}


@pytest.mark.cuda
def test_the_gpu_here_works_at_some_watts() -> None:
    import torch

    a = torch.randn(4096, 4096, device="cuda")
    joules, reason = energy.joules(lambda: a @ a, telemetry.uuid_of("cuda"), torch.cuda.synchronize)
    assert is_a_sentence(reason) if joules is None else 0 < joules < 100
