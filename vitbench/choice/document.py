"""A choice as plain data, and the command that predicts each of its rows by a trace."""

from __future__ import annotations

from typing import Any

from vitbench.choice.choice import Choice

SCHEMA = 1


def as_json(choice: Choice) -> dict[str, Any]:
    asked, target = choice.asked, choice.target
    return {
        "schema": SCHEMA,
        "device": target.name,
        "device_name": target.title,
        "dtype": target.dtype,
        "knowledge": target.knowledge.level,
        "words": target.knowledge.words,
        "latency_seconds": asked.budget.latency,
        "memory_bytes": choice.memory,
        "images": list(asked.images),
        "throughput": asked.throughput,
        "families": sorted({program.family for program in choice.programs}),
        "configurations": choice.configurations,
        "fitting": choice.fitting,
        "rows": [_row(choice, row) for row in choice.rows],
    }


def _row(choice: Choice, row: Any) -> dict[str, Any]:
    program, seconds = choice.programs[row["program"]], float(row["seconds"])
    factors = choice.target.knowledge.interval
    return {
        "model": program.variant.name,
        "patch": program.patch,
        "window": program.window,
        "image": int(row["image"]),
        "backend": program.backend,
        "batch": int(row["batch"]),
        "parameters": int(row["parameters"]),
        "macs": int(row["macs"]),
        "seconds": seconds,
        "interval": [factor * seconds for factor in factors] if factors else None,
        "images_per_second": int(row["batch"]) / seconds,
        "peak_bytes": int(row["bytes"]),
        "command": command_of(choice, row),
    }


def command_of(choice: Choice, row: Any) -> str:
    """row: of the choice's."""
    program, target = choice.programs[row["program"]], choice.target
    own = program.window == program.own
    return (
        f"vitbench predict {program.variant.name} --device {target.name} --image {row['image']} --batch {row['batch']} "
        f"--dtype {target.dtype} --backend {program.backend}" + ("" if own else f" --window {program.window}")
    )
