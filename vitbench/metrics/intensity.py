"""Work for each byte that must cross memory.

moved_bytes are the fewest: inputs, weights and outputs, once each. What a program writes and reads again (a score
matrix, a copy) comes on top, so its true intensity is at most this.
"""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics, quotient


class Intensity(Metric):
    name = "intensity"
    description = "FLOPs per byte of the fewest bytes that must cross memory: 2 x macs / moved_bytes"

    def value(self, row: Row) -> float | None:
        macs = figure(row, "macs")
        return None if macs is None else quotient(2 * macs, figure(row, "moved_bytes"))


metrics.add(Intensity())
