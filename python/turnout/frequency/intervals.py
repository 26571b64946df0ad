"""Confidence intervals of frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from turnout.frequency.models import StatisticModel

__all__ = ["Interval", "critical_value", "normal_interval", "score_interval"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper limits of the frequencies of all answers.

    Attributes
    ----------
    low, high
        float64 arrays with one limit for each answer. Not cut to [0, 1].
    level
        The confidence level asked for.
    method
        ``"normal"`` or ``"score"``.
    simultaneous
        None if the level holds for each answer by itself; ``"bonferroni"`` or ``"sidak"`` if it
        holds for all answers at once.
    """

    low: Floats
    high: Floats
    level: float
    method: str
    simultaneous: str | None

    @property
    def width(self) -> Floats:
        """The distance between the limits."""
        return self.high - self.low

    def contains(self, frequencies: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether the limits enclose each of some frequencies."""
        given = np.asarray(frequencies, dtype=np.float64)
        return (self.low <= given) & (given <= self.high)

    def __repr__(self) -> str:
        """Show how the interval was made."""
        both = f", simultaneous={self.simultaneous!r}" if self.simultaneous else ""
        return f"Interval({self.low.size} answers, level={self.level:g}, {self.method!r}{both})"


def critical_value(level: float, size: int, simultaneous: str | None) -> float:
    """Quantile of the normal law for two-sided intervals.

    Bonferroni holds for any dependence; Sidak's inequality for normal vectors of any correlation.
    """
    from scipy import special  # noqa: PLC0415

    if simultaneous == "bonferroni":
        tail = (1 - level) / size
    elif simultaneous == "sidak":
        tail = -np.expm1(np.log(level) / size)
    else:
        tail = 1 - level
    return float(-special.ndtri(tail / 2))


def normal_interval(frequencies: Floats, errors: Floats, z: float) -> tuple[Floats, Floats]:
    """Estimate plus and minus ``z`` standard errors (Wald)."""
    return frequencies - z * errors, frequencies + z * errors


def score_interval(model: StatisticModel, statistic: Floats, z: float) -> tuple[Floats, Floats]:
    """All ``f`` with ``(X - a - b f)^2 <= z^2 Var(X; f)``: Wilson's interval, for this variance.

    Where no ``f`` fits (an estimate so far outside [0, 1] that the variance is not defined there),
    the limits are those of the normal interval with the variance at the nearest frequency.
    """
    shifted = statistic - model.a
    quadratic = model.b**2 - z * z * model.v2
    half = model.b * shifted + 0.5 * z * z * model.v1
    constant = shifted**2 - z * z * model.v0
    discriminant = half**2 - quadratic * constant
    root = np.sqrt(np.maximum(discriminant, 0.0))
    estimate = model.frequency(statistic)
    errors = np.sqrt(model.variance(np.clip(estimate, 0.0, 1.0)))
    fallback = normal_interval(estimate, errors, z)
    defined = discriminant >= 0.0
    low = np.where(defined, (half - root) / quadratic, fallback[0])
    high = np.where(defined, (half + root) / quadratic, fallback[1])
    return low, high
