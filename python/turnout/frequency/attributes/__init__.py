"""Several attributes of each person at once.

:class:`SplitBudget` reports every attribute with a part of epsilon; :class:`SampledAttribute`
reports one, chosen at random, with the whole of it. Either way what a person sends is protected as
a whole: all attributes may change at once.
"""

from turnout.frequency.attributes.collection import AttributeCollection, collection_from_dict
from turnout.frequency.attributes.comparison import (
    AttributeComparison,
    AttributeRecord,
    compare_attributes,
)
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.attributes.reports import AttributeReports
from turnout.frequency.attributes.sampled import SampledAttribute
from turnout.frequency.attributes.split import SplitBudget
from turnout.frequency.attributes.tally import AttributeTally

__all__ = [
    "AttributeCollection",
    "AttributeComparison",
    "AttributeRecord",
    "AttributeReports",
    "AttributeTally",
    "PaddedOracle",
    "SampledAttribute",
    "SplitBudget",
    "collection_from_dict",
    "compare_attributes",
]
