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
from turnout.mean.estimate import MeanEstimate, MeanInterval
from turnout.mean.estimators import estimator_variance
from turnout.mean.groups import GroupedMeanEstimate, MeanSeries
from turnout.mean.law import SecondMoment
from turnout.mean.mechanism import Duchi, Hybrid, MeanMechanism, Piecewise
from turnout.mean.tally import MeanTally

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
