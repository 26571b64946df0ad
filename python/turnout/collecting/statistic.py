"""What estimates of all kinds are made of: a statistic, its mean and its variance.

A statistic ``X`` has the mean ``a + b f`` and the variance ``v0 + v1 f + v2 f^2``, where ``f`` is
the true value on a scale from 0 to 1. The same five numbers give the exact design-based variance,
the plug-in standard error and the score interval, so these cannot contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from turnout._types import Floats


@dataclass(frozen=True)
class StatisticModel:
    """Mean ``a + b f`` and variance ``v0 + v1 f + v2 f^2`` of a statistic.

    If the statistic is a count of successes in independent trials, or less spread than one, their
    number is ``trials``.
    """

    a: float
    b: float
    v0: float
    v1: float
    v2: float = 0.0
    trials: int | None = None

    def frequency(self, statistic: Floats) -> Floats:
        """Invert the mean."""
        return (statistic - self.a) / self.b

    def variance(self, frequency: Floats) -> Floats:
        """Variance of the frequency estimate where the true frequency is ``frequency``."""
        return self.statistic_variance(frequency) / self.b**2

    def statistic_variance(self, frequency: Floats) -> Floats:
        """Variance of the statistic where the true frequency is ``frequency``."""
        return np.maximum(self.v0 + (self.v1 + self.v2 * frequency) * frequency, 0.0)


def mean_inverse(trials: int, rate: float) -> float:
    """Compute E[1/S | S >= 1] for a binomial S.

    Summed over all counts within 40 standard deviations; for a mean above 10^6 by the series in
    the inverse mean, whose next term is below 10^-17 of it.

    Examples
    --------
    >>> round(mean_inverse(2, 0.5), 6)  # (2/4 * 1 + 1/4 * 1/2) / (3/4)
    0.833333
    """
    if rate == 1.0:
        return 1.0 / trials
    mean = trials * rate
    if mean > 1e6:
        # Moments of the relative deviation (S - mean) / mean, to the fourth.
        variance = (1 - rate) / mean
        third = (1 - rate) * (1 - 2 * rate) / mean**2
        fourth = 3 * variance**2
        return (1 + variance - third + fourth) / mean
    reach = 40 * np.sqrt(mean * (1 - rate)) + 40
    low, high = max(1, int(mean - reach)), min(trials, int(mean + reach))
    counts = np.arange(low, high + 1, dtype=np.float64)
    # The mass up to a factor, by the ratios of neighbours: those of factorials would cancel.
    steps = np.log((trials - counts[:-1]) / counts[1:] * (rate / (1 - rate)))
    logarithm = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(logarithm - logarithm.max())
    return float((mass / counts).sum() / mass.sum())
