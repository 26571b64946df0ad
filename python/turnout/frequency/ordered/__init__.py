"""Answers with an order: shares of ranges, quantiles, means, and collection in a tree."""

from turnout.frequency.ordered.hierarchy import HierarchicalCollection
from turnout.frequency.ordered.levels import HierarchicalEstimate, HierarchicalTally
from turnout.frequency.ordered.reports import OrderedReports
from turnout.frequency.ordered.sources import ordered
from turnout.frequency.ordered.statistics import (
    LinearEstimate,
    OrderedEstimate,
    OrderedStatistics,
    Quantile,
    isotonic,
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
