"""Confidence limits of an estimate, from the mean and the variance of its statistic.

A statistic ``X`` has the mean ``a + b f`` and the variance ``v0 + v1 f + v2 f^2``, where ``f`` is
the true value on a scale from 0 to 1. These five numbers give the exact design-based variance, the
plug-in standard error and the score interval. So the three cannot contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._tables import Tabular
from turnout._types import Floats

#: Counts below this times the sixth power of the critical value are small: the skewness of a count
#: C changes a tail by a factor of about exp(z^3 / (6 sqrt(C))).
FEW = 0.5


@dataclass(frozen=True)
class StatisticModel:
    """A statistic with mean ``a + b f`` and variance ``v0 + v1 f + v2 f^2``.

    If the statistic is a count of successes in independent trials, or less spread than such a
    count, ``trials`` is their number. If trials share noise, ``effect`` is the factor by which the
    variance exceeds that of such a count. The statistic is then about as precise as one of
    ``effect`` times fewer independent trials.
    """

    a: float
    b: float
    v0: float
    v1: float
    v2: float = 0.0
    trials: int | None = None
    effect: float = 1.0

    def frequency(self, statistic: Floats) -> Floats:
        """Estimate the frequency from the statistic, by inverting the mean."""
        return (statistic - self.a) / self.b

    def variance(self, frequency: Floats) -> Floats:
        """Return the variance of the frequency estimate at a true frequency."""
        return self.statistic_variance(frequency) / self.b**2

    def statistic_variance(self, frequency: Floats) -> Floats:
        """Return the variance of the statistic at a true frequency."""
        return np.maximum(self.v0 + (self.v1 + self.v2 * frequency) * frequency, 0.0)


def mean_inverse(trials: int, rate: float) -> float:
    """Compute E[1/S | S >= 1] for a binomial S.

    The sum is over all counts within 40 standard deviations. For a mean above 10^6 a series in the
    inverse mean is used; its next term is below 10^-17 of the result.

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


@dataclass(frozen=True, eq=False)
class BaseInterval(Tabular):
    """Base class of intervals: lower and upper limits."""

    low: Any
    high: Any
    level: float
    method: str
    simultaneous: str | None

    @property
    def width(self) -> Any:
        """The distance between the limits."""
        return self.high - self.low

    def contains(self, truth: npt.ArrayLike) -> Any:
        """Return whether the limits contain the truth: one number for each pair of limits.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each pair of limits.
        """
        given = _arguments.frequencies("truth", truth, self.low.size)
        return (self.low <= given) & (given <= self.high)


#: What a simultaneous level of groups can hold for.
OVER = ("labels", "groups", "all")


def each_level(
    level: object, simultaneous: str | None, over: str, labels: int, groups: int
) -> float:
    """Return the level of one interval, given which labels and groups hold simultaneously."""
    checked = checked_level(level, simultaneous)
    _arguments.choice("over", over, OVER)
    if simultaneous is None:
        return checked
    size = {"labels": labels, "groups": groups, "all": labels * groups}[over]
    return 1.0 - tail_probability(checked, size, simultaneous)


def checked_level(level: object, simultaneous: str | None) -> float:
    """Check a confidence level, and how many intervals it is for."""
    checked = _arguments.confidence("level", level)
    _arguments.choice("simultaneous", simultaneous, (None, "bonferroni", "sidak"))
    return checked


def critical_value(
    level: float, size: int, simultaneous: str | None, degrees: float | None = None
) -> float:
    """Return the quantile of the normal law, or of Student's, for two-sided intervals.

    Bonferroni holds for any dependence; Sidak's inequality for normal vectors of any correlation.
    """
    from scipy import special  # noqa: PLC0415

    tail = tail_probability(level, size, simultaneous)
    if degrees is not None:
        return float(-special.stdtrit(degrees, tail / 2))
    return float(-special.ndtri(tail / 2))


def tail_probability(level: float, size: int, simultaneous: str | None) -> float:
    """Return the allowed error probability of one interval, for one answer or for all."""
    if simultaneous == "bonferroni":
        return (1 - level) / size
    if simultaneous == "sidak":
        return float(-np.expm1(np.log(level) / size))
    return 1 - level


def normal_interval(frequencies: Floats, errors: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the estimate plus and minus ``z`` standard errors (Wald)."""
    return frequencies - z * errors, frequencies + z * errors


def score_interval(model: StatisticModel, statistic: Floats, z: float) -> tuple[Floats, Floats]:
    """Return all ``f`` with ``(X - a - b f)^2 <= z^2 Var(X; f)``, as Wilson's interval.

    The quadratic inequality is solved for the distance from the estimate, which avoids cancellation
    for any number of nodes. An estimate can be so far outside [0, 1] that the variance is not
    defined there and no ``f`` satisfies the inequality. Then the limits are those of the normal
    interval with the variance at the nearest frequency.
    """
    estimate = model.frequency(statistic)
    quadratic = model.b**2 - z * z * model.v2
    half = 0.5 * z * z * (model.v1 + 2 * model.v2 * estimate)
    constant = z * z * (model.v0 + (model.v1 + model.v2 * estimate) * estimate)
    discriminant = half**2 + quadratic * constant
    root = np.sqrt(np.maximum(discriminant, 0.0))
    errors = np.sqrt(model.variance(np.clip(estimate, 0.0, 1.0)))
    fallback = normal_interval(estimate, errors, z)
    defined = discriminant >= 0.0
    low = np.where(defined, estimate + (half - root) / quadratic, fallback[0])
    high = np.where(defined, estimate + (half + root) / quadratic, fallback[1])
    return low, high


def exact_interval(model: StatisticModel, statistic: Floats, z: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits of the mean of a count, as frequencies.

    The count is a sum of independent Bernoulli variables with different probabilities (given the
    sample, for the Hajek estimator). Its tails are lighter than those of the binomial law with the
    same mean: Hoeffding (1956), for tails that begin a whole count beyond the mean. Closer to the
    mean they can be larger by about a hundredth. The limits are wide where perturbation is small.
    Trials that share noise are counted as fewer trials (Korn, Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", 1998).
    """
    from scipy import special  # noqa: PLC0415

    trials = float(model.trials or 0) / model.effect
    tail = special.ndtr(-z)
    # A million answers have few different counts.
    counts, place = np.unique(statistic / model.effect, return_inverse=True)
    low = np.zeros_like(counts)
    some = counts > 0
    low[some] = special.betaincinv(counts[some], trials - counts[some] + 1, tail)
    high = np.ones_like(counts)
    some = counts < trials
    high[some] = special.betainccinv(counts[some] + 1, trials - counts[some], tail)
    low, high = (model.frequency(model.effect * trials * limit) for limit in (low, high))
    return low[place], high[place]


def automatic_interval(
    model: StatisticModel, statistic: Floats, z: float
) -> tuple[Floats, Floats, str]:
    """Return score limits, or exact ones where a count is too small for the normal law.

    Returns
    -------
    tuple
        The limits, and the name of the method.
    """
    low, high = score_interval(model, statistic, z)
    if model.trials is None:
        return low, high, "score"
    few = np.minimum(statistic, model.trials - statistic) < FEW * z**6 * model.effect
    if not few.any():
        return low, high, "score"
    exact = exact_interval(model, statistic, z)
    name = "exact" if model.effect == 1.0 else "effective"
    name = name if few.all() else f"score, {name} for small counts"
    return np.where(few, exact[0], low), np.where(few, exact[1], high), name
