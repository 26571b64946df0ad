"""Limits of an estimate, from the model of its statistic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._tables import Tabular
from turnout._types import Floats
from turnout.collecting.statistic import StatisticModel

#: Counts below this times the sixth power of the critical value are small: the skewness of a count
#: C changes a tail by a factor of about exp(z^3 / (6 sqrt(C))).
FEW = 0.5


@dataclass(frozen=True, eq=False)
class BaseInterval(Tabular):
    """Lower and upper limits, of whatever was asked for."""

    low: Any
    high: Any
    level: float
    method: str
    simultaneous: str | None

    @property
    def width(self) -> Any:
        """The distance between the limits."""
        return self.high - self.low

    def contains(self, frequencies: npt.ArrayLike) -> Any:
        """Whether the limits enclose each of some frequencies.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each pair of limits.
        """
        given = _arguments.frequencies("frequencies", frequencies, self.low.size)
        return (self.low <= given) & (given <= self.high)


def critical_value(
    level: float, size: int, simultaneous: str | None, degrees: float | None = None
) -> float:
    """Quantile of the normal law, or of Student's, for two-sided intervals.

    Bonferroni holds for any dependence; Sidak's inequality for normal vectors of any correlation.
    """
    from scipy import special  # noqa: PLC0415

    tail = tail_probability(level, size, simultaneous)
    if degrees is not None:
        return float(-special.stdtrit(degrees, tail / 2))
    return float(-special.ndtri(tail / 2))


def tail_probability(level: float, size: int, simultaneous: str | None) -> float:
    """How likely one interval may miss, for a level that holds for each answer or for all."""
    if simultaneous == "bonferroni":
        return (1 - level) / size
    if simultaneous == "sidak":
        return float(-np.expm1(np.log(level) / size))
    return 1 - level


def normal_interval(frequencies: Floats, errors: Floats, z: float) -> tuple[Floats, Floats]:
    """Estimate plus and minus ``z`` standard errors (Wald)."""
    return frequencies - z * errors, frequencies + z * errors


def score_interval(model: StatisticModel, statistic: Floats, z: float) -> tuple[Floats, Floats]:
    """All ``f`` with ``(X - a - b f)^2 <= z^2 Var(X; f)``: Wilson's interval, for this variance.

    The quadratic inequality is solved for the distance from the estimate, so that nothing cancels
    however many nodes there are. Where no ``f`` fits (an estimate so far outside [0, 1] that the
    variance is not defined there), the limits are those of the normal interval with the variance at
    the nearest frequency.
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
    """Clopper-Pearson limits of the mean of a count, as frequencies.

    The count is a sum of independent Bernoulli variables with different probabilities (given the
    sample, for the Hajek estimator), whose tails are lighter than those of the binomial law with
    the same mean: Hoeffding (1956), for tails that begin a whole count beyond the mean; closer to
    it they can be larger by about a hundredth. The limits are wide where perturbation is small.
    """
    from scipy import special  # noqa: PLC0415

    trials = float(model.trials or 0)
    tail = special.ndtr(-z)
    # A million answers have few different counts.
    counts, place = np.unique(statistic, return_inverse=True)
    low = np.zeros_like(counts)
    some = counts > 0
    low[some] = special.betaincinv(counts[some], trials - counts[some] + 1, tail)
    high = np.ones_like(counts)
    some = counts < trials
    high[some] = special.betainccinv(counts[some] + 1, trials - counts[some], tail)
    return model.frequency(trials * low)[place], model.frequency(trials * high)[place]


def automatic_interval(
    model: StatisticModel, statistic: Floats, z: float
) -> tuple[Floats, Floats, str]:
    """Score limits; exact ones where a count is so small that the normal law is no guide.

    Returns
    -------
    tuple
        The limits, and which method gave them.
    """
    low, high = score_interval(model, statistic, z)
    if model.trials is None:
        return low, high, "score"
    few = np.minimum(statistic, model.trials - statistic) < FEW * z**6
    if not few.any():
        return low, high, "score"
    exact = exact_interval(model, statistic, z)
    name = "exact" if few.all() else "score, exact for small counts"
    return np.where(few, exact[0], low), np.where(few, exact[1], high), name
