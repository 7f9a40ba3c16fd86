"""What NVML says of a GPU: clocks, heat, power, throttling, and who else is on it.

Questions go to nvidia-ml-py (`import pynvml`) by UUID, never by index: torch numbers GPUs in another order than NVML.
NVML is started once and stays; the end of the process closes it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

# Bits of NVML's "clocks event reasons", from 0; idle (0) and clocks that somebody set (1, 8) are no throttling.
THROTTLES = {
    2: "sw_power_cap",
    3: "hw_slowdown",
    4: "sync_boost",
    5: "sw_thermal_slowdown",
    6: "hw_thermal_slowdown",
    7: "hw_power_brake_slowdown",
}
MHZ = 1_000_000


class Unread(Exception):
    """What NVML does not tell; its text is the reason, one sentence."""


def read(uuid: str | None) -> dict[str, Any]:
    """Figures, at this moment, of the GPU that this process uses; {"reason": sentence} where there are none.

    Hz, degrees Celsius, watts (from Ampere on the mean of a second on most GPUs), bytes. Ask while the work is hot:
    throttle reasons are those of now. A figure that could not be read is None, its reason in not_read under its key.
    other_processes are those NVML shows, in a container maybe its own alone. A pid is None where NVML numbers
    processes as the host does, for then it cannot be told which of them is this one.
    """
    figures: dict[str, Any] = {}
    not_read: dict[str, str] = {}
    try:
        nvml, gpu = handle(uuid)
    except Unread as unread:
        return {"reason": str(unread)}
    for key, figure in FIGURES.items():
        try:
            figures[key] = figure(nvml, gpu)
        except Unread as unread:
            figures[key], not_read[key] = None, str(unread)
    if len(not_read) == len(FIGURES):
        why = "; a MIG slice has no figures of its own, so measure a whole GPU" if str(uuid).startswith("MIG-") else ""
        return {"reason": f"nothing could be read of {uuid}: {not_read['sm_clock_hz']}{why}"}
    return {**figures, "not_read": not_read}


def throttled(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str] | None:
    """Throttle reasons of either reading, sorted; None where there are none but one of them could not be read."""
    readings = [reading.get("throttle_reasons") for reading in (before, after)]
    found = sorted({reason for reasons in readings for reason in reasons or ()})
    return found or (None if None in readings else [])


def driver() -> str | None:
    """Version of the NVIDIA driver; None where there is none, or no binding to ask it with."""
    try:
        return str(ask(_nvml(), "nvmlSystemGetDriverVersion"))
    except Unread:
        return None


def uuid_of(device: str) -> str | None:
    """UUID of torch's current GPU as NVML writes it ("GPU-..."); None on a device that is no GPU."""
    if device != "cuda":
        return None
    import torch

    return f"GPU-{torch.cuda.get_device_properties().uuid}".replace("GPU-GPU-", "GPU-")


def _nvml() -> Any:
    """The binding, NVML started. Raises Unread."""
    try:
        import pynvml
    except ImportError:
        raise Unread("the binding to NVML is missing; pip install nvidia-ml-py") from None
    try:
        pynvml.nvmlInit()  # again and again: it only counts
    except pynvml.NVMLError as error:
        raise Unread(f"no NVIDIA driver answers: {error}; see that nvidia-smi runs") from None
    return pynvml


def handle(uuid: str | None) -> tuple[Any, Any]:
    """The binding and a handle of the GPU. Raises Unread."""
    if uuid is None:
        raise Unread("no GPU: NVML knows NVIDIA GPUs alone")
    nvml, bare = _nvml(), uuid.removeprefix("GPU-")
    names = [uuid] if uuid.startswith("MIG-") else [f"GPU-{bare}", f"MIG-{bare}"]  # torch prints both kinds bare
    errors = []
    for name in names:
        try:
            return nvml, nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError as error:
            errors.append(str(error))
    raise Unread(f"NVML knows no GPU {names[0]}: {errors[0]}; nvidia-smi -L lists those it knows")


def ask(nvml: Any, questions: str, *words: Any) -> Any:
    """NVML's answer to the first question that both binding and driver know, of newest to oldest. Raises Unread."""
    for question in questions.split():
        try:
            if hasattr(nvml, question):
                return getattr(nvml, question)(*words)
        except nvml.NVMLError_FunctionNotFound:
            continue
        except nvml.NVMLError as error:
            raise Unread(f"NVML answers {question} with {str(error)!r}") from None
    raise Unread(f"this driver or its binding is too old for {questions.split()[0]}")


def _throttles(nvml: Any, gpu: Any) -> list[str]:
    questions = "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons"
    bits = ask(nvml, questions, gpu)
    return [name for bit, name in THROTTLES.items() if bits >> bit & 1]


def _others(nvml: Any, gpu: Any) -> list[dict[str, int | None]]:
    found: dict[int, int | None] = {}
    for kind in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        for process in ask(nvml, f"{kind}_v3 {kind}_v2", gpu):
            # A process that holds a GPU holds memory of it: 0 is what some drivers say in containers.
            found[process.pid] = process.usedGpuMemory or found.get(process.pid)
    torch = sys.modules.get("torch")  # without it this process holds no GPU
    if os.getpid() not in found and torch is not None and torch.cuda.is_initialized():
        if not found:
            raise Unread("NVML lists no process here, not even this one, so others may be hidden too")
        return [{"pid": None, "bytes": None} for _ in range(len(found) - 1)]
    return [{"pid": pid, "bytes": held} for pid, held in found.items() if pid != os.getpid()]


FIGURES: dict[str, Callable[[Any, Any], Any]] = {
    "sm_clock_hz": lambda nvml, gpu: ask(nvml, "nvmlDeviceGetClockInfo", gpu, nvml.NVML_CLOCK_SM) * MHZ,
    "sm_clock_most_hz": lambda nvml, gpu: ask(nvml, "nvmlDeviceGetMaxClockInfo", gpu, nvml.NVML_CLOCK_SM) * MHZ,
    "memory_clock_hz": lambda nvml, gpu: ask(nvml, "nvmlDeviceGetClockInfo", gpu, nvml.NVML_CLOCK_MEM) * MHZ,
    "temperature_celsius": lambda nvml, gpu: ask(
        nvml, "nvmlDeviceGetTemperatureV nvmlDeviceGetTemperature", gpu, nvml.NVML_TEMPERATURE_GPU
    ),
    "power_watts": lambda nvml, gpu: ask(nvml, "nvmlDeviceGetPowerUsage", gpu) / 1000,
    "throttle_reasons": _throttles,
    "other_processes": _others,
}
