"""How much is done in a second."""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics, quotient


class ImagesPerSecond(Metric):
    name = "images_per_second"
    description = "images per second: batch / seconds"

    def value(self, row: Row) -> float | None:
        return quotient(figure(row, "batch"), figure(row, "seconds"))


class MacsPerSecond(Metric):
    name = "macs_per_second"
    description = "MACs per second: macs / seconds; FLOP/s are twice that"

    def value(self, row: Row) -> float | None:
        return quotient(figure(row, "macs"), figure(row, "seconds"))


metrics.add(ImagesPerSecond())
metrics.add(MacsPerSecond())
