"""Several attributes of each person at once.

:class:`SplitBudget` reports every attribute with a part of epsilon; :class:`SampledAttribute`
reports one, chosen at random, with the whole of it. Either way what a person sends is protected as
a whole: all attributes may change at once.
"""

from turnout.frequency.attributes.estimate import (
    AttributeEstimate,
    AttributeTally,
    GroupedAttributeEstimate,
)
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.attributes.schemes import (
    AttributeCollection,
    SampledAttribute,
    SplitBudget,
)
from turnout.products import Questions

__all__ = [
    "AttributeCollection",
    "AttributeEstimate",
    "AttributeTally",
    "GroupedAttributeEstimate",
    "PaddedOracle",
    "Questions",
    "SampledAttribute",
    "SplitBudget",
]
