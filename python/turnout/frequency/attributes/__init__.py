"""Several attributes of each person at once.

:class:`SplitBudget` reports every attribute with a part of epsilon. :class:`SampledAttribute`
reports one random attribute with the whole epsilon. Both protect a person's message as a whole: all
attributes may change at once.
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
