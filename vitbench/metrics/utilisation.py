"""What part of the machine's attainable rates a case reaches.

Above 1 is no error: attainable rates are the best that was seen, and data already in a cache need not cross memory.
"""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics, quotient


class RateShare(Metric):
    name = "rate_share"
    description = "share of the attainable product rate in its dtype: macs / seconds / attainable_macs_per_second"

    def value(self, row: Row) -> float | None:
        rate = quotient(figure(row, "macs"), figure(row, "seconds"))
        return quotient(rate, figure(row, "attainable_macs_per_second"))


class BandwidthShare(Metric):
    name = "bandwidth_share"
    description = (
        "share of the attainable memory bandwidth that the fewest bytes need: "
        "moved_bytes / seconds / attainable_bytes_per_second; above 1, they came from a cache"
    )

    def value(self, row: Row) -> float | None:
        rate = quotient(figure(row, "moved_bytes"), figure(row, "seconds"))
        return quotient(rate, figure(row, "attainable_bytes_per_second"))


metrics.add(RateShare())
metrics.add(BandwidthShare())
