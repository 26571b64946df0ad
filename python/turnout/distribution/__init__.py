"""Distributions of numbers under local differential privacy when only some nodes take part.

A value takes the same path as in :mod:`turnout.frequency`: a mechanism with its bounds and bins, a
participation, reports, a tally, an estimate with its intervals.

>>> import numpy as np
>>> import turnout as tn
>>> wave = tn.SquareWave(epsilon=1.0, bounds=(0.0, 24.0), bins=48)
>>> hours = np.random.default_rng(1).normal(7.4, 1.2, 100_000).clip(0, 24)
>>> estimate = wave.collect(hours, participation=tn.Bernoulli(0.5), seed=7).estimate()
>>> median = estimate.quantile(0.5, level=0.999)
>>> bool(median.low <= np.median(hours) <= median.high)
True
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
