"""Bounds that sums of a round exceed with a small probability, by Chernoff's method.

All of them are proven for any probability: the search picks the best of many valid bounds. They do
not need SciPy, so the device of a user does not load it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Tilts beyond this one would overflow.
LARGEST_TILT = 600.0

#: Room for the rounding of what is compared.
_ROOM = 1.0 + 1e-9


def chernoff(log_moment: Callable[[float], float], chance: float, largest: float) -> int:
    """Return a whole number h with ``P[X > h] <= chance`` for a whole number X.

    Parameters
    ----------
    log_moment
        The logarithm of the moment generating function of X, at tilts above zero.
    chance
        In (0, 1].
    largest
        The largest tilt that is tried.

    Examples
    --------
    >>> chernoff(lambda tilt: tilt**2 / 2, 1e-6, LARGEST_TILT)  # standard normal: sqrt(2 log 10^6)
    5
    """
    needed = -math.log(chance)

    def level(logarithm: float) -> float:
        # e^(log M - tilt x) is at most the chance from this x on, whatever the tilt.
        tilt = math.exp(logarithm)
        return (log_moment(tilt) + needed) / tilt

    end = math.log(largest)
    return math.ceil(_least(level, end - 50.0, end) * _ROOM) - 1


def binomials(parts: Sequence[tuple[int, float]], chance: float) -> int:
    """Return a number that a sum of binomial variables exceeds with at most a given chance.

    Parameters
    ----------
    parts
        Trials and rate of each variable.
    chance
        In (0, 1].

    Examples
    --------
    >>> binomials([(1000, 0.5)], 1e-6), binomials([(3, 0.5)], 1e-6)
    (582, 3)
    """

    def log_moment(tilt: float) -> float:
        growth = math.expm1(tilt)
        return sum(trials * math.log1p(rate * growth) for trials, rate in parts)

    return min(chernoff(log_moment, chance, LARGEST_TILT), sum(trials for trials, _ in parts))


def binomials_least(parts: Sequence[tuple[int, float]], chance: float) -> int:
    """Return a number that a sum of binomial variables is below with at most a given chance.

    Examples
    --------
    >>> binomials_least([(1000, 0.5)], 1e-6), binomials_least([(3, 0.5)], 1e-6)
    (418, 0)
    """
    trials = sum(each for each, _ in parts)
    return trials - binomials([(each, 1.0 - rate) for each, rate in parts], chance)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the minimum of a function that falls and then rises; any of its values is valid."""
    for _ in range(80):
        left, right = (2.0 * low + high) / 3.0, (low + 2.0 * high) / 3.0
        if function(left) <= function(right):
            high = right
        else:
            low = left
    return function(high)
