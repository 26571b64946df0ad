"""Several questions from one report each: joint tables, and shares of one answer given another."""

from turnout.frequency.joint.conditional import ConditionalShare, ConditionalShares, ShareInterval
from turnout.frequency.joint.estimate import JointEstimate, JointMarginal
from turnout.frequency.joint.pair_tally import PairEstimate, PairTally
from turnout.frequency.joint.pairs import PairTables
from turnout.frequency.joint.table import JointTable
from turnout.frequency.joint.tally import JointTally
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
