"""Private samplers: one realistic record per person.

A person's whole data set is turned into *one draw* from a distribution close to it. The draw is
epsilon-locally differentially private for the whole data set, because the distribution never leaves
a band around a public reference.
"""

from turnout.samplers.adapters import as_reference
from turnout.samplers.base import PrivateSampler
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.reference import Mixture, Normal, Reference, StandardNormal, Uniform

__all__ = [
    "Mixture",
    "Normal",
    "PrivacyBudget",
    "PrivateSampler",
    "Reference",
    "StandardNormal",
    "Uniform",
    "as_reference",
]
