"""Which CPU this is, without torch."""

from __future__ import annotations

import platform
from pathlib import Path


def name() -> str:
    """As Linux gives it, else as Python does."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
