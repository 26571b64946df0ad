"""Statistics of ordered answers: cumulative shares, ranges, quantiles and means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.intervals import critical_value
from turnout.domain import Domain, code_of
from turnout.errors import InvalidTypeError, InvalidValueError

#: Numbers of a block of coefficients.
_BLOCK = 2**22


@dataclass(frozen=True)
class LinearEstimate:
    """A number that is a weighted sum of frequencies.

    Attributes
    ----------
    value
        The estimate; unbiased, so possibly outside of the possible range.
    standard_error
        Its standard error, with the covariances between the answers.
    """

    value: float
    standard_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a normal confidence interval.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        tuple of float
            The lower and the upper limit, not cut to the possible range.

        Raises
        ------
        InvalidValueError
            If the level is not between 0 and 1.

        Examples
        --------
        >>> low, high = LinearEstimate(0.5, 0.01).interval(0.95)
        >>> round(low, 4), round(high, 4)
        (0.4804, 0.5196)
        """
        z = critical_value(_arguments.confidence("level", level), 1, None)
        return self.value - z * self.standard_error, self.value + z * self.standard_error


@dataclass(frozen=True)
class Quantile:
    """An estimated quantile: the first answer up to which a share of the nodes lies.

    Attributes
    ----------
    probability
        The share.
    label
        The estimate.
    low, high
        Labels that contain the true quantile between them, with at least (asymptotically) the
        level.
    level
        The confidence level.
    """

    probability: float
    label: Hashable
    low: Hashable
    high: Hashable
    level: float


def variances_of_all(
    variances: Callable[[Floats], Floats], holds: np.ufunc, domain: Domain
) -> Floats:
    """Compute the variances of one sum for each answer, over the codes in its relation."""
    codes = np.arange(domain.size)
    step = max(1, _BLOCK // domain.size)
    rows = (codes[start : start + step, None] for start in range(0, domain.size, step))
    return np.concatenate([variances(holds(row, codes).astype(np.float64)) for row in rows])


class OrderedStatistics(ABC):
    """Base class of statistics of ordered answers; the order is that of the domain's codes.

    Attributes
    ----------
    frequencies
        Unbiased estimates of the frequencies, which add up to one; some may be negative.
    """

    frequencies: Floats

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The answers."""

    @abstractmethod
    def _variances(self, coefficients: Floats) -> Floats:
        """Variances of weighted sums of :attr:`frequencies`, for each row of an (m, k) array."""

    @property
    def cumulative(self) -> Floats:
        """The share of the nodes with each answer or an earlier one, float64; not always rising."""
        return np.cumsum(self.frequencies)

    @cached_property
    def cumulative_standard_errors(self) -> Floats:
        """The standard errors of :attr:`cumulative`; read-only, computed once."""
        errors: Floats = np.sqrt(variances_of_all(self._variances, np.greater_equal, self.domain))
        errors.flags.writeable = False
        return errors

    @property
    def monotone(self) -> Floats:
        """The nearest (Euclidean) cumulative shares that rise from 0 to 1: post-processing."""
        cumulative = np.clip(isotonic(self.cumulative), 0.0, 1.0)
        cumulative[-1] = 1.0
        return cumulative

    def sum(self, coefficients: Any) -> LinearEstimate:
        """Estimate a weighted sum of the frequencies.

        Parameters
        ----------
        coefficients
            One number for each answer.

        Returns
        -------
        LinearEstimate
            The sum, with its standard error.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each answer.
        """
        weights = _arguments.frequencies("coefficients", coefficients, self.domain.size)
        variance = float(self._variances(weights[None])[0])
        return LinearEstimate(float(weights @ self.frequencies), float(np.sqrt(variance)))

    def range(self, low: Hashable, high: Hashable) -> LinearEstimate:
        """Estimate the share of the nodes between two labels, both included.

        Parameters
        ----------
        low, high
            Labels of the domain, in its order.

        Returns
        -------
        LinearEstimate
            The share.

        Raises
        ------
        UnknownLabelError
            If one is not a label of the domain.
        InvalidValueError
            If ``high`` comes before ``low``.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.ordered import ordered
        >>> tally = tn.DirectEncoding(3.0, 5).simulate([1000, 2000, 3000, 2000, 2000], seed=1)
        >>> share = ordered(tally).range(1, 3)
        >>> low, high = share.interval(0.99)
        >>> low < 0.7 < high
        True
        """
        first = code_of("low", self.domain, low)
        last = code_of("high", self.domain, high)
        if last < first:
            raise InvalidValueError(
                f"high must not come before low in the domain, got {_arguments.shown(low)} and "
                f"{_arguments.shown(high)}"
            )
        codes = np.arange(self.domain.size)
        return self.sum(((first <= codes) & (codes <= last)).astype(np.float64))

    def mean(self, values: Any = None) -> LinearEstimate:
        """Estimate the mean over the nodes of the number of each answer.

        Parameters
        ----------
        values
            One number for each answer; by default the labels, if they are numbers.

        Returns
        -------
        LinearEstimate
            The mean.

        Raises
        ------
        InvalidTypeError
            If there are no values and the labels are not numbers.
        InvalidValueError
            If there is not one finite number for each answer.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.ordered import ordered
        >>> tally = tn.DirectEncoding(3.0, tn.Domain([0, 10, 20])).simulate([10**6] * 3, seed=1)
        >>> round(ordered(tally).mean().value)
        10
        """
        if values is None:
            values = list(self.domain.labels)
            if not all(isinstance(value, (int, float)) for value in values):
                raise InvalidTypeError(
                    "values must have one number for each answer: the labels of the domain are not "
                    "numbers"
                )
        return self.sum(values)

    def quantile(self, probability: float, level: float = 0.95) -> Quantile:
        """Estimate a quantile: the first answer up to which a share of the nodes lies.

        The limits invert one-sided tests of the cumulative shares (pointwise, not a simultaneous
        band). At the true quantile the cumulative share is at least ``probability``, and just
        before it is less. So each limit misses with probability (1 - level) / 2, as far as
        cumulative shares are normal.

        Parameters
        ----------
        probability
            The share, in (0, 1).
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        Quantile
            The estimate from :attr:`monotone`, and its limits.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is not between 0 and 1.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.ordered import ordered
        >>> tally = tn.DirectEncoding(3.0, 100).simulate([10_000] * 100, seed=1)
        >>> median = ordered(tally).quantile(0.5)
        >>> median.low <= 49 <= median.high
        True
        """
        probability = _arguments.confidence("probability", probability)
        level = _arguments.confidence("level", level)
        reach = critical_value(level, 1, None) * self.cumulative_standard_errors
        cumulative, last = self.cumulative, self.domain.size - 1
        low = np.flatnonzero(cumulative + reach >= probability)
        high = np.flatnonzero(cumulative[:-1] - reach[:-1] < probability)
        codes = [
            int(np.searchsorted(self.monotone, probability)),
            int(low[0]) if low.size else last,
            int(high[-1]) + 1 if high.size else 0,
        ]
        # The estimate is where the monotone shares cross, the limits are where others do.
        codes[1], codes[2] = min(codes[0], codes[1]), max(codes[0], codes[2])
        label, lower, upper = self.domain.decode([min(code, last) for code in codes])
        return Quantile(probability, label, lower, upper, level)


def isotonic(values: Floats) -> Floats:
    """Find the nearest (Euclidean) numbers that never fall: neighbours that do are averaged.

    Ayer, Brunk, Ewing, Reid, Silverman, "An empirical distribution function for sampling with
    incomplete information" (1955).

    Examples
    --------
    >>> isotonic(np.array([0.1, 0.5, 0.3, 0.9]))
    array([0.1, 0.4, 0.4, 0.9])
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 (slow)

    result: Floats = isotonic_regression(values).x
    return result
