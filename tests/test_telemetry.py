"""What NVML says of a GPU, and that whatever it does not say comes with the reason."""

from __future__ import annotations

import re
from typing import Any

import fake_nvml
import pytest
from fake_nvml import Ask, card, is_a_sentence

from vitbench.measure import telemetry

ask, libraries = fake_nvml.ask, fake_nvml.libraries  # fixtures, which pytest finds by these names
FIGURES = {
    **{"sm_clock_hz": 1_755_000_000, "sm_clock_most_hz": 1_980_000_000, "memory_clock_hz": 2_619_000_000},
    **{"temperature_celsius": 61, "power_watts": 412.5, "throttle_reasons": [], "other_processes": []},
}
PLANTED = ("sm", "sm_most", "memory", "temperature", "power", "reasons", "graphics")  # in the order of FIGURES
BOTH = "answer = [telemetry.read('GPU-a'), telemetry.driver()]"
# A stand-in for torch in a process that holds a GPU.
HOLDING = "sys.modules['torch'] = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))"


def read(ask: Ask, planted: str, first: str = "", uuid: str = "GPU-a", library: str = "new") -> Any:
    return ask(planted, f"{first}\nanswer = telemetry.read({uuid!r})", library)


@pytest.mark.parametrize("library", ["new", "old"])
def test_every_figure_is_in_si_units_under_names_old_and_new(ask: Ask, library: str) -> None:
    assert read(ask, card("GPU-a"), library=library) == {**FIGURES, "not_read": {}}


@pytest.mark.parametrize("uuid", ["GPU-b", "b"])
def test_the_uuid_finds_the_gpu_whatever_their_order(ask: Ask, uuid: str) -> None:
    planted = card("GPU-a", temperature=50) + card("GPU-b", temperature=70) + card("GPU-c", temperature=90)
    assert read(ask, planted, uuid=uuid)["temperature_celsius"] == 70


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x1 | 0x2 | 0x100 | 0x200 | 0x400, []),
        (0x4, ["sw_power_cap"]),
        (0x8 | 0x40 | 0x1, ["hw_slowdown", "hw_thermal_slowdown"]),
        (0x10 | 0x20 | 0x80, ["sync_boost", "sw_thermal_slowdown", "hw_power_brake_slowdown"]),
    ],
)
def test_throttling_is_named_and_idle_clocks_are_none(ask: Ask, bits: int, names: list[str]) -> None:
    assert read(ask, card("GPU-a", reasons=bits))["throttle_reasons"] == names


def test_throttling_is_what_either_reading_saw() -> None:
    power, heat = {"throttle_reasons": ["sw_power_cap"]}, {"throttle_reasons": ["hw_slowdown", "sw_power_cap"]}
    assert telemetry.throttled(power, heat) == telemetry.throttled(heat, power) == ["hw_slowdown", "sw_power_cap"]
    assert telemetry.throttled({"reason": "no GPU"}, {"throttle_reasons": None}) is None
    assert telemetry.throttled({"throttle_reasons": []}, {"throttle_reasons": []}) == []
    assert telemetry.throttled({"throttle_reasons": []}, {"throttle_reasons": None}) is None
    assert telemetry.throttled({"reason": "no GPU"}, power) == ["sw_power_cap"]


@pytest.mark.parametrize("library", ["new", "old"])
def test_other_processes_are_all_but_this_one(ask: Ask, library: str) -> None:
    first = "open(os.environ['FAKE_NVML'], 'a').write(f'GPU-a compute {os.getpid()}:9,71:4096,72:-1,74:0\\n')"
    planted = card("GPU-a", compute=None, graphics="73:512,71:4096")
    others = read(ask, planted, f"{HOLDING}\n{first}", library=library)["other_processes"]
    found = sorted((other["pid"], other["bytes"]) for other in others)
    assert found == [(71, 4096), (72, None), (73, 512), (74, None)]


def test_a_process_that_holds_no_gpu_finds_all_to_be_others(ask: Ask) -> None:
    assert read(ask, card("GPU-a", compute="71:4096"))["other_processes"] == [{"pid": 71, "bytes": 4096}]


@pytest.mark.parametrize(("listed", "others"), [("71:4096", 0), ("71:4096,72:1,73:1", 2)])
def test_under_numbers_of_the_host_one_of_the_processes_is_this_one(ask: Ask, listed: str, others: int) -> None:
    found = read(ask, card("GPU-a", compute=listed), HOLDING)["other_processes"]
    assert found == [{"pid": None, "bytes": None}] * others


def test_a_driver_that_hides_even_this_process_is_not_believed_to_see_no_other(ask: Ask) -> None:
    found = read(ask, card("GPU-a"), HOLDING)
    assert found["other_processes"] is None
    assert is_a_sentence(found["not_read"]["other_processes"])


@pytest.mark.parametrize(("what", "key"), [*zip(PLANTED, FIGURES, strict=True)])
def test_a_figure_the_card_has_not_is_none_with_its_reason_and_the_others_stay(ask: Ask, what: str, key: str) -> None:
    found = read(ask, card("GPU-a", **{what: None}))
    reason = found.pop("not_read").pop(key)
    assert found == {**FIGURES, key: None}
    assert is_a_sentence(reason) and "Not Supported" in reason


@pytest.mark.parametrize(
    ("planted", "uuid", "says"),
    [
        ("", None, "no GPU: NVML knows NVIDIA GPUs alone"),
        (card("GPU-a"), "GPU-z", "no GPU GPU-z: Not Found"),
        (card("GPU-a", handle="!15"), "GPU-a", "GPU-a: GPU is lost"),
        ("GPU-a handle 1\n", "GPU-a", "nothing could be read of GPU-a.*Not Supported"),
        ("MIG-a handle 1\n", "MIG-a", "Not Supported.*MIG slice"),
        ("MIG-a handle !4\n", "MIG-a", "no GPU MIG-a: Insufficient Permissions"),
    ],
)
def test_where_nothing_can_be_read_there_is_one_reason(ask: Ask, planted: str, uuid: str | None, says: str) -> None:
    found = ask(planted, f"answer = telemetry.read({uuid!r})")
    assert list(found) == ["reason"] and is_a_sentence(found["reason"])
    assert re.search(says, found["reason"])


def test_a_slice_that_torch_prints_without_its_kind_is_found(ask: Ask) -> None:
    found = read(ask, "MIG-a handle 1\nMIG-a compute -\nMIG-a graphics -\n")
    assert found["other_processes"] == [] and found["power_watts"] is None


@pytest.mark.parametrize(
    ("first", "library", "says"),
    [
        ("sys.modules['pynvml'] = None", "new", "the binding to NVML is missing; pip install nvidia-ml-py$"),
        ("", "broken", "NVML Shared Library Not Found"),
    ],
)
def test_without_binding_or_library_the_reason_says_so(ask: Ask, first: str, library: str, says: str) -> None:
    found, version = ask(card("GPU-a"), f"{first}\n{BOTH}", library)
    assert list(found) == ["reason"] and re.search(says, found["reason"])
    assert version is None


def test_without_a_driver_the_reason_says_so_until_there_is_one(ask: Ask) -> None:
    code = f"{BOTH}\nopen(os.environ['FAKE_NVML'], 'w').write('driver init 0\\ndriver version 1.2')\n"
    early = "open(os.environ['FAKE_NVML'], 'w').write('driver init !9')\n"
    found, version, later = ask("", f"{early}{code}answer.append(telemetry.driver())")
    assert list(found) == ["reason"] and "Driver Not Loaded" in found["reason"]
    assert version is None and later == "1.2"


def test_the_driver_is_known_by_its_version(ask: Ask) -> None:
    assert ask("", "answer = telemetry.driver()") == "570.86.15"


@pytest.mark.parametrize("printed", ["0b93a6e4-7ea2", "GPU-0b93a6e4-7ea2"])
def test_a_uuid_is_written_as_nvml_writes_it(printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    class Properties:
        uuid = printed

    monkeypatch.setattr(torch.cuda, "get_device_properties", Properties)
    assert telemetry.uuid_of("cuda") == "GPU-0b93a6e4-7ea2"
    assert telemetry.uuid_of("cpu") is None


@pytest.mark.cuda
def test_the_gpu_here_is_found() -> None:
    import torch

    torch.ones(1, device="cuda")  # a GPU that nobody uses may be asleep
    found = telemetry.read(telemetry.uuid_of("cuda"))
    assert found["sm_clock_hz"] > 1e8, found
