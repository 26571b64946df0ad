"""Private samplers: one realistic record per person.

A person's whole data set is turned into *one draw* from a distribution close to it. The draw is
epsilon-locally differentially private for the whole data set, because the distribution never leaves
a band around a public reference.
"""

from turnout.samplers.adapters import as_reference
from turnout.samplers.base import PrivateSampler
from turnout.samplers.boosting import BoostingRound, MollifiedBoosting
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.density import MollifiedDensity
from turnout.samplers.mollifier import Projection, RelativeMollifier
from turnout.samplers.normalizer import LogNormalizer
from turnout.samplers.reference import Mixture, Normal, Reference, StandardNormal, Uniform

__all__ = [
    "BoostingRound",
    "LogNormalizer",
    "Mixture",
    "MollifiedBoosting",
    "MollifiedDensity",
    "Normal",
    "PrivacyBudget",
    "PrivateSampler",
    "Projection",
    "Reference",
    "RelativeMollifier",
    "StandardNormal",
    "Uniform",
    "as_reference",
]
