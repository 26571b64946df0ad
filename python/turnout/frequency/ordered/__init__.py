"""Answers with an order: shares of ranges, quantiles, means, and collection in a tree."""

from turnout.frequency.ordered.hierarchy import (
    HierarchicalCollection,
    HierarchicalEstimate,
    HierarchicalTally,
)
from turnout.frequency.ordered.statistics import (
    LinearEstimate,
    OrderedEstimate,
    OrderedReports,
    OrderedStatistics,
    Quantile,
    isotonic,
    ordered,
)

__all__ = [
    "HierarchicalCollection",
    "HierarchicalEstimate",
    "HierarchicalTally",
    "LinearEstimate",
    "OrderedEstimate",
    "OrderedReports",
    "OrderedStatistics",
    "Quantile",
    "isotonic",
    "ordered",
]
