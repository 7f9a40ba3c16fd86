"""The least time that the machine's attainable rates allow, after Williams, Waterman, Patterson, 2009 (roofline).

Products and traffic are taken to overlap fully, and the traffic to be the fewest bytes.
"""

from __future__ import annotations

from vitbench.metric import Metric, Row, figure, metrics, quotient


def least_seconds(row: Row) -> float | None:
    """The longer of the time of its products and the time of its traffic, each at the attainable rate."""
    products = quotient(figure(row, "macs"), figure(row, "attainable_macs_per_second"))
    traffic = quotient(figure(row, "moved_bytes"), figure(row, "attainable_bytes_per_second"))
    return None if products is None or traffic is None else max(products, traffic)


class RooflineSeconds(Metric):
    name = "roofline_seconds"
    description = (
        "least seconds of one call at the attainable rates: the longer of macs / attainable_macs_per_second "
        "and moved_bytes / attainable_bytes_per_second"
    )

    def value(self, row: Row) -> float | None:
        return least_seconds(row)


class RooflineShare(Metric):
    name = "roofline_share"
    description = "share of the roofline that it reaches: roofline_seconds / seconds"

    def value(self, row: Row) -> float | None:
        return quotient(least_seconds(row), figure(row, "seconds"))


metrics.add(RooflineSeconds())
metrics.add(RooflineShare())
