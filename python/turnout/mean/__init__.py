"""Means under local differential privacy when only some nodes take part.

A value takes the same path as in :mod:`turnout.frequency`: a mechanism with its bounds, a
participation, reports, a tally, an estimate with its interval.

>>> import turnout as tn
>>> mechanism = tn.mean.Piecewise(epsilon=2.0, bounds=(0.0, 100.0))
>>> ages = [20.0, 30.0, 40.0, 50.0] * 25_000
>>> tally = mechanism.collect(ages, participation=tn.Bernoulli(0.5), seed=7)
>>> estimate = tally.estimate()
>>> estimate.interval(0.99).contains(35.0)
True
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
