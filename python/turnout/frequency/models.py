"""How the statistic of an estimator varies with the true frequency.

Every estimator of a count is ``n (X - a) / b`` for a statistic ``X`` with mean ``a + b f`` and
variance ``v0 + v1 f + v2 f^2``, where ``f`` is the true frequency of the answer among ``n`` nodes.
The same five numbers give the exact design-based variance, the plug-in standard error and the score
interval, so these cannot contradict each other.

Notation: ``C`` reports support the answer, ``S`` reports were received, a report supports the own
answer with probability ``p`` and any other fixed one with probability ``q``, ``d = p - q``. The
values are fixed; participation and perturbation are random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "StatisticModel",
    "excess_model",
    "personal_support_model",
    "ratio_model",
    "support_model",
]

Floats = npt.NDArray[np.float64]


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


def support_model(nodes: int, rate: float, p: float, q: float) -> StatisticModel:
    """``X = C`` with a common rate: the estimators c, g and T.

    A node supports with probability ``rate r``, ``r`` being ``p`` or ``q``: C is a sum of
    independent Bernoulli variables. The sampling paper's Theorem 3.2 has this in the limit f -> 0;
    its full variance takes the square of the mean of ``r`` for the mean of the squares.
    """
    reports = nodes * rate
    other = q * (1 - rate * q)
    return StatisticModel(
        a=reports * q,
        b=reports * (p - q),
        v0=reports * other,
        v1=reports * (p * (1 - rate * p) - other),
        trials=nodes,
    )


def personal_support_model(
    nodes: int, total: float, total_of_squares: float, p: float, q: float
) -> StatisticModel:
    """``X = C`` with personal probabilities that do not depend on the values: the estimator T.

    ``total`` and ``total_of_squares`` are the sums of the probabilities and of their squares over
    all nodes. The values are taken as assigned to the nodes at random, so that the probabilities of
    the nodes that hold an answer are a simple random sample: the variance of their sum counts too.
    """
    d = p - q
    spread = max(total_of_squares - total * total / nodes, 0.0)
    assignment = nodes * d * d * spread / (nodes - 1) if nodes > 1 else 0.0
    return StatisticModel(
        a=total * q,
        b=total * d,
        v0=total * q - total_of_squares * q * q,
        v1=total * d - total_of_squares * (p * p - q * q) + assignment,
        v2=-assignment,
        trials=nodes,
    )


def excess_model(nodes: int, rate: float, p: float, q: float) -> StatisticModel:
    """``X = C - S q`` with a common rate: the estimators c_hat and Horvitz-Thompson.

    The support and the number of reports are positively correlated, which the sampling paper's
    Theorem 3.5 leaves out: with the covariance, c_hat never has the larger variance.
    """
    d = p - q
    reports = nodes * rate
    return StatisticModel(
        a=0.0,
        b=reports * d,
        v0=reports * q * (1 - q),
        v1=reports * ((1 - 2 * q) * d - rate * d * d),
    )


def ratio_model(nodes: int, received: int, p: float, q: float) -> StatisticModel:
    """``X = C`` given ``S`` reports, with a common rate: the Hajek estimator.

    Given their number, the nodes that report are a simple random sample without replacement, so
    the mean is exact and the variance is that of the perturbation plus the hypergeometric one.
    """
    d = p - q
    sampling = received * d * d * (nodes - received) / (nodes - 1) if nodes > 1 else 0.0
    return StatisticModel(
        a=received * q,
        b=received * d,
        v0=received * q * (1 - q),
        v1=received * (p * (1 - p) - q * (1 - q)) + sampling,
        v2=-sampling,
        trials=received,
    )
