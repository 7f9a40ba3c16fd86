"""Whether the host, not the device, sets the pace."""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics


class LaunchBound(Metric):
    name = "launch_bound"
    description = "1 where the host needs more seconds to launch a call than the device to run it, else 0; no unit"

    def value(self, row: Row) -> float | None:
        host, device = figure(row, "host_seconds"), figure(row, "seconds")
        return None if host is None or device is None else float(host > device)


metrics.add(LaunchBound())
