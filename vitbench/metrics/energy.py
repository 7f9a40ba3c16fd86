"""Energy for an image."""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics, quotient


class JoulesPerImage(Metric):
    name = "joules_per_image"
    description = "joules for each image: energy_joules / batch"

    def value(self, row: Row) -> float | None:
        return quotient(figure(row, "energy_joules"), figure(row, "batch"))


metrics.add(JoulesPerImage())
