"""Means under local differential privacy when only some nodes take part.

The path of a value is that of :mod:`turnout.frequency`: a mechanism with its bounds, a
participation, reports, a tally, an estimate with its interval.

>>> import turnout as tn
>>> mechanism = tn.mean.Piecewise(epsilon=2.0, bounds=(0.0, 100.0))
>>> ages = [20.0, 30.0, 40.0, 50.0] * 25_000
>>> tally = mechanism.collect(ages, participation=tn.Bernoulli(0.5), seed=7)
>>> estimate = tally.estimate()
>>> estimate.interval(0.99).contains(35.0)
True
"""

from turnout._public import listing
from turnout.mean.duchi import Duchi
from turnout.mean.estimate import MeanEstimate, MeanInterval
from turnout.mean.groups import GroupedMeanEstimate
from turnout.mean.hybrid import Hybrid
from turnout.mean.law import SecondMoment
from turnout.mean.mechanism import MeanMechanism
from turnout.mean.piecewise import Piecewise
from turnout.mean.series import MeanSeries
from turnout.mean.tally import MeanTally
from turnout.mean.variance import estimator_variance

__all__ = [
    "Duchi",
    "GroupedMeanEstimate",
    "Hybrid",
    "MeanEstimate",
    "MeanInterval",
    "MeanMechanism",
    "MeanSeries",
    "MeanTally",
    "Piecewise",
    "SecondMoment",
    "estimator_variance",
]

__dir__ = listing(__all__)
