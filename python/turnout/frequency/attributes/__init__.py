"""Several attributes of each person at once.

:class:`SplitBudget` reports every attribute with a part of epsilon; :class:`SampledAttribute`
reports one, chosen at random, with the whole of it. Either way what a person sends is protected as
a whole: all attributes may change at once.
"""

from turnout.frequency.attributes.base import AttributeCollection
from turnout.frequency.attributes.comparison import (
    AttributeComparison,
    AttributeRecord,
    compare_attributes,
)
from turnout.frequency.attributes.estimate import AttributeEstimate
from turnout.frequency.attributes.groups import GroupedAttributeEstimate
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.attributes.sampled import SampledAttribute
from turnout.frequency.attributes.split import SplitBudget
from turnout.frequency.attributes.tally import AttributeTally
from turnout.products import Questions

__all__ = [
    "AttributeCollection",
    "AttributeComparison",
    "AttributeEstimate",
    "AttributeRecord",
    "AttributeTally",
    "GroupedAttributeEstimate",
    "PaddedOracle",
    "Questions",
    "SampledAttribute",
    "SplitBudget",
    "compare_attributes",
]
