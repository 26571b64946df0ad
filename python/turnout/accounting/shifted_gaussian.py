"""Discrete Gaussian noise under whole-number shifts, and with hidden participation."""

from __future__ import annotations

import math

import numpy as np

from turnout._types import Floats, Integers
from turnout.accounting.values import Divergence

#: Beyond this exponent a weight is nothing.
_NOTHING = 746.0

#: The relative error of a tail, with reserve: exponents of up to 746 with three roundings, sums of
#: pairs in at most 25 steps.
_ERROR = 4e-13

#: What is lost beyond the table and below the range of numbers.
_LOST = 1e-300

#: The unit of rounding.
_UNIT = 2.0**-53


class ShiftedGaussian:
    """The tails of a discrete Gaussian P, and of its privacy loss against a shifted P.

    Under the shifted law, ``x = n + shift`` has a loss of ``(n - c) h`` more than epsilon, with ``h
    = shift / variance`` and ``c = epsilon / h - shift / 2``. Tables hold ``G(k) = P[n >= k]`` and
    ``W(k)``, the sum over n from k on of ``P(n) (1 - e^(-(n - k) h))``. With k the first n above c
    and ``a = (k - c) h`` the divergence is ``(1 - e^-a) G(k) + e^-a W(k)``. All terms are positive,
    so there is no cancellation.
    """

    def __init__(self, variance: float, shift: int) -> None:
        self._variance, self._shift = variance, shift
        self._reach = math.isqrt(math.ceil(2.0 * _NOTHING * variance)) + 2
        places = np.arange(-self._reach, self._reach + 1, dtype=np.float64)
        weights = np.exp(-(places**2) / (2.0 * variance))
        mass = weights / weights.sum()
        step = shift / variance
        self._mass = mass
        self._tails = _summed(mass, 0.0)
        later = np.append(self._tails[1:], 0.0)
        self._excess = _summed(-math.expm1(-step) * later, step)
        self._step = step

    def divergence(self, epsilon: Floats) -> Divergence:
        """Bound the divergence of the shifted law from the law at some epsilons."""
        places, half = epsilon / self._step, 0.5 * self._shift
        delta, first = self._beyond(places - half, 4.0 * _UNIT * (places + half))
        return Divergence(_bounded(delta), first, self._tail(np.floor(places + half) + 1.0))

    def _tail(self, place: Floats) -> Floats:
        return np.append(self._tails, 0.0)[self._index(place)]

    def _index(self, place: Floats) -> Integers:
        clipped = np.clip(place, -self._reach, self._reach + 1)
        return clipped.astype(np.int64) + self._reach

    def _beyond(self, crossing: Floats, doubt: Floats) -> tuple[Floats, Floats]:
        """Bound ``sum over n of P(n) [1 - e^(-(n - c) h)]_+``, and return the mass of its event.

        For each unit that c falls, the sum rises by at most h times the mass from ``c - doubt`` on.
        """
        start = np.floor(crossing) + 1.0
        index = self._index(start)
        tails, excess = np.append(self._tails, 0.0), np.append(self._excess, 0.0)
        gap = (start - crossing) * self._step
        mass = tails[index]
        value = -np.expm1(-gap) * mass + np.exp(-gap) * excess[index]
        more = tails[self._index(np.floor(crossing - doubt) + 1.0)]
        # Below the table everything is in the event.
        value = np.where(start < -self._reach, mass, value)
        return value + self._step * doubt * more, mass

    def moved(self, epsilon: Floats, rate: float) -> Divergence:
        """Bound the divergence between a person in one sum and the same person in another sum.

        The person takes part with a rate. For each outcome y of the other sum, the first sum must
        reach ``b(y) = ((alpha - 1)(1 - rate) + alpha rate P(y - 1) / P(y)) / rate``.
        """
        return Divergence(
            *np.array([self._moved(float(e), rate) for e in epsilon]).reshape(-1, 3).T
        )

    def _moved(self, epsilon: float, rate: float) -> tuple[float, float, float]:
        places = np.arange(-self._reach, self._reach + 1, dtype=np.float64)
        ratios = (2.0 * places - 1.0) / (2.0 * self._variance)
        away = -math.inf
        if rate < 1.0 and epsilon > 0.0:
            away = epsilon + math.log(-math.expm1(-epsilon)) + math.log1p(-rate) - math.log(rate)
        needed = np.logaddexp(away, epsilon + ratios)
        size = epsilon + np.abs(ratios) + np.abs(needed) - math.log(rate)
        doubt = 16.0 * _UNIT * self._variance * (1.0 + size)
        crossing = self._variance * needed - 0.5
        terms, mass = self._beyond(crossing, doubt)
        after = self._tail(np.floor(crossing) + 2.0)
        first = float(self._mass @ (rate * mass + (1.0 - rate) * after))
        before = np.append(0.0, self._mass[:-1])
        second = float(((1.0 - rate) * self._mass + rate * before) @ after)
        delta = float(_bounded(np.array([rate * float(self._mass @ terms)]))[0])
        return delta, first, second


def _summed(values: Floats, step: float) -> Floats:
    """Return ``sum over j >= 0 of e^(-j step) values[k + j]`` for each k, in pairs of halves."""
    total, far = values.copy(), 1
    while far < total.size and far * step < _NOTHING:
        total[:-far] += math.exp(-far * step) * total[far:].copy()
        far *= 2
    return total


def _bounded(delta: Floats) -> Floats:
    """Round up."""
    return np.minimum(1.0, delta * (1.0 + _ERROR) + _LOST)
