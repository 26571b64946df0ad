"""Joint tables of several questions, and shares of one answer given another."""

from turnout.frequency.joint.conditional import ConditionalShare, ConditionalShares, ShareInterval
from turnout.frequency.joint.pairs import PairEstimate, PairTables, PairTally
from turnout.frequency.joint.table import JointEstimate, JointMarginal, JointTable, JointTally
from turnout.products import ProductDomain

__all__ = [
    "ConditionalShare",
    "ConditionalShares",
    "JointEstimate",
    "JointMarginal",
    "JointTable",
    "JointTally",
    "PairEstimate",
    "PairTables",
    "PairTally",
    "ProductDomain",
    "ShareInterval",
]
