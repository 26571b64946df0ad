"""Ordered answers: shares of ranges, quantiles, means, and collection in a tree."""

from turnout.frequency.ordered.levels import (
    HierarchicalCollection,
    HierarchicalEstimate,
    HierarchicalTally,
)
from turnout.frequency.ordered.reports import ordered
from turnout.frequency.ordered.statistics import (
    LinearEstimate,
    OrderedStatistics,
    Quantile,
    isotonic,
)

__all__ = [
    "HierarchicalCollection",
    "HierarchicalEstimate",
    "HierarchicalTally",
    "LinearEstimate",
    "OrderedStatistics",
    "Quantile",
    "isotonic",
    "ordered",
]
