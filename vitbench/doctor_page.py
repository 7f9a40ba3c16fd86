"""The findings of the doctor as a page for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vitbench.measure import host
from vitbench.measure.host import Found
from vitbench.operator import MODES

DTYPES = ("float32", "float16", "bfloat16")  # every backend is asked for each


def show(found: Found, console: Console) -> None:
    """The sections one under the other, each as wide as the terminal, then what to mend."""
    _section(console, f"device: {found['device']['kind']}", _device_rows(found["device"]))
    _section(console, "state", _state_rows(found["state"]))
    versions = [
        Text(f"{row['name']} {row['version'] or '-'}", "yellow" if row["remedy"] else "") for row in found["versions"]
    ]
    console.print("\nversions", style="bold")
    console.print(Padding(Columns(versions, equal=True, padding=(0, 2)), (0, 0, 0, 2)))
    title = f"backends: a layer of ViT-B/16; {', '.join(DTYPES)}; {', '.join(MODES)}"
    _section(console, title, [_backend_row(row) for row in found["backends"]])
    counts = [(row["name"], row["lacking"] or f"counts on {', '.join(row['places'])}") for row in found["counters"]]
    _section(console, "counters", counts)
    disk = found["disk"]
    _section(console, "disk", [("results", f"{si(disk['free_bytes'], 'B')} free in {disk['folder']}")])
    if found["mend"]:
        _section(console, "what to mend", [("-", sentence) for sentence in found["mend"]], label_width=1)
    else:
        console.print("\nnothing to mend", style="bold green")


def _section(console: Console, title: str, rows: Sequence[Sequence[str | Text]], label_width: int = 17) -> None:
    """rows: a label and what stands beside it, in one column or two."""
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=label_width, style="cyan", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(f"\n{title}", style="bold", markup=False)
    console.print(Padding(table, (0, 0, 0, 2)))


def _device_rows(device: Found) -> list[tuple[str, str]]:
    gpu, quota, limit = device["gpu"], device["core_quota"], device["memory_limit_bytes"]
    rows = []
    if gpu:
        rows += [("GPU", gpu["name"]), ("UUID", gpu["uuid"] or "-"), ("capability", gpu["compute_capability"])]
        rows += [("GPU memory", _free(gpu))]
    cores = f"{device['physical_cores'] or '-'} physical; this process may use {device['usable_cores']}"
    return [
        *rows,
        ("CPU", device["cpu"]),
        ("cores", cores + (f", for the time of {quota:g}" if quota else "")),
        ("torch threads", str(device["threads"])),
        ("memory", _free(device) + (f"; this process may take {si(limit, 'B')}" if limit else "")),
    ]


def _state_rows(state: Found) -> list[tuple[str, str]]:
    hidden = "unknown: the kernel does not show it"
    busiest = [f"{each['name']} (pid {each['pid']}): {each['cores']:.0%} of a core" for each in state["busiest"]]
    return [
        ("clock", si(state["clock_hz"], "Hz", hidden)),
        ("highest clock", si(state["clock_most_hz"], "Hz", hidden)),
        ("governor", state["governor"] or hidden),
        ("load", f"{state['load']:.2f} on {state['cores']} cores, mean of the last minute"),
        ("other processes", "\n".join(busiest) or f"none takes more than {host.BUSY:.0%} of a core now"),
        *(_gpu_rows(state["gpu"]) if state["gpu"] else ()),
    ]


def _gpu_rows(gpu: Found) -> list[tuple[str, str]]:
    if "reason" in gpu:
        return [("GPU", f"unknown: {gpu['reason']}")]

    def told(key: str, text: Callable[[Any], str]) -> str:
        if gpu[key] is not None:
            return text(gpu[key])
        return f"unknown: {gpu.get('not_read', {}).get(key, 'NVML does not tell')}"

    return [
        ("GPU clock", told("sm_clock_hz", lambda hertz: si(hertz, "Hz"))),
        ("highest GPU clock", told("sm_clock_most_hz", lambda hertz: si(hertz, "Hz"))),
        ("GPU memory clock", told("memory_clock_hz", lambda hertz: si(hertz, "Hz"))),
        ("GPU temperature", told("temperature_celsius", lambda celsius: f"{celsius} °C")),
        ("GPU power", told("power_watts", lambda watts: f"{watts:.0f} W")),
        ("GPU throttled by", told("throttle_reasons", lambda reasons: ", ".join(reasons) or "nothing")),
        ("others on the GPU", told("other_processes", lambda others: "\n".join(map(on_gpu, others)) or "none")),
    ]


def on_gpu(process: Found) -> str:
    pid = "a process that is not shown here" if process["pid"] is None else f"pid {process['pid']}"
    return pid if process["bytes"] is None else f"{pid}, which holds {si(process['bytes'], 'B')}"


def _backend_row(row: Found) -> tuple[str, Text, Text]:
    cells: dict[str, set[tuple[str, str]]] = {}
    for refused in row["refused"]:
        cells.setdefault(refused["reason"], set()).add((refused["dtype"], refused["mode"]))
    about = Text(row["description"])
    for reason, where in cells.items():
        about.append(f"\nrefuses {_which(where)}: {reason}", style="yellow")
    return row["name"], Text(row["runs"], {"all": "green"}.get(row["runs"], "yellow")), about


def _which(cells: set[tuple[str, str]]) -> str:
    """The dtypes and modes among the refused, whole rows and columns by one word."""
    dtypes = [dtype for dtype in DTYPES if all((dtype, mode) in cells for mode in MODES)]
    modes = [mode for mode in MODES if all((dtype, mode) in cells for dtype in DTYPES)]
    if len(modes) == len(MODES):
        return "all"
    rest = [f"{dtype} {mode}" for dtype, mode in sorted(cells) if dtype not in dtypes and mode not in modes]
    return ", ".join([*dtypes, *modes, *rest])


def _free(holder: Found) -> str:
    return f"{si(holder['memory_free_bytes'], 'B')} of {si(holder['memory_bytes'], 'B')} free"


def si(value: float | None, unit: str, unknown: str = "-") -> str:
    """Three digits: 24.4 GB, 2.10 GHz."""
    if value is None:
        return unknown
    factor, prefix = next(((f, p) for f, p in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if value >= f), (1e3, "k"))
    return f"{value / factor:#.3g}".rstrip(".") + f" {prefix}{unit}"
