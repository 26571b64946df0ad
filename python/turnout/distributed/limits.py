"""Exact confidence limits of counts that are published by sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from turnout._types import Floats, Integers, Truths

#: Dummies further than this many standard deviations from their mean are not summed over: what is
#: left out is below 1e-20, and counts against the tails.
_REACH = 10.0
_LEFT_OUT = 1e-20


def exact_sampling_limits(
    sums: Integers,
    received: int,
    rates: tuple[float, float],
    dummies: int,
    level: float,
) -> tuple[Floats, Floats]:
    """Invert the tails of ``Bin(a, rate) + Bin(dummies, dummy_rate)`` for the number ``a``.

    Clopper and Pearson (1934): all ``a`` for which neither tail at the sum that was seen is below
    half of what may be missed. They cover with at least the level, whatever ``a``.

    Parameters
    ----------
    sums
        int64, what was published.
    received
        The number of users, of whom ``a`` hold the item.
    rates
        The probability with which a user is counted, and a dummy.
    dummies
        How many dummies are on each item.
    level
        The confidence level.

    Returns
    -------
    tuple of numpy.ndarray
        float64, the limits of the frequencies ``a / received``, in [0, 1].
    """
    tail = (1.0 - level) / 2.0 - _LEFT_OUT
    offsets, masses = _dummies(dummies, rates) if rates[0] != rates[1] else (None, None)

    def upper_tail(held: Integers, least: Integers) -> Floats:
        """Give ``P[sum >= least]`` where ``held`` users hold the item."""
        if offsets is None or masses is None:
            return at_least(held + dummies, least, rates[0])
        beyond = at_least(held[:, None], least[:, None] - offsets[None, :], rates[0])
        result: Floats = beyond @ masses
        return result

    # The least a with P[sum >= seen] >= tail, and the largest with P[sum <= seen] >= tail.
    low = _first(lambda held: upper_tail(held, sums) >= tail, sums.size, received)
    beyond = _first(lambda held: upper_tail(held, sums + 1) > 1.0 - tail, sums.size, received)
    high = np.maximum(beyond - 1, 0)
    return np.minimum(low, received) / received, np.minimum(high, received) / received


def thresholded_limits(
    sums: Integers, received: int, rate: float, threshold: int, level: float
) -> tuple[Floats, Floats]:
    """Invert the tails of a count that is published where it reaches a threshold.

    What is not published, a sum of 0, may be any smaller count: the limits hold those of all of
    them, and cover with at least the level like the limits of counts that are all published.

    Parameters
    ----------
    sums
        int64, what was published; 0 stands for "below the threshold".
    received
        The number of users.
    rate
        The probability with which a user is counted.
    threshold
        The smallest count that is published.
    level
        The confidence level.

    Returns
    -------
    tuple of numpy.ndarray
        float64, the limits of the frequencies, in [0, 1].
    """
    published = sums >= threshold
    largest = np.where(published, sums, threshold - 1)
    low, high = exact_sampling_limits(largest, received, (rate, rate), 0, level)
    return np.where(published, low, 0.0), high


def summable(dummies: int, dummy_rate: float) -> bool:
    """Whether there are so few dummies that sums over their number are quick."""
    return dummies * dummy_rate * (1.0 - dummy_rate) <= 1e4


def _first(holds: Callable[[Integers], Truths], size: int, most: int) -> Integers:
    """Find the least number from 0 to ``most`` where a monotone condition holds, or one more."""
    below = np.full(size, -1, np.int64)
    above = np.full(size, most + 1, np.int64)
    while (above - below > 1).any():
        middle = (below + above) // 2
        inside = np.clip(middle, 0, most)
        yes = holds(inside) & (middle >= 0)
        above = np.where(yes, middle, above)
        below = np.where(yes, below, middle)
    return above


def at_least(trials: Any, least: Any, rate: float) -> Floats:
    """Give ``P[Bin(trials, rate) >= least]``; between whole numbers of trials what is smooth."""
    from scipy import special  # noqa: PLC0415

    trials, least = np.broadcast_arrays(trials, least)
    result = np.where(least <= 0, 1.0, 0.0)
    inside = (least > 0) & (least <= trials)
    result[inside] = special.betainc(least[inside], trials[inside] - least[inside] + 1.0, rate)
    return result


def _dummies(dummies: int, rates: tuple[float, float]) -> tuple[Integers, Floats]:
    """Give the likely numbers of dummies that are counted, with their probabilities."""
    from scipy import special  # noqa: PLC0415

    rate = rates[1]
    reach = _REACH * math.sqrt(dummies * rate * (1.0 - rate)) + 30.0
    first = max(0, math.floor(dummies * rate - reach))
    last = min(dummies, math.ceil(dummies * rate + reach))
    counts = np.arange(first, last + 1)
    masses = (
        special.gammaln(dummies + 1.0)
        - special.gammaln(counts + 1.0)
        - special.gammaln(dummies - counts + 1.0)
        + special.xlogy(counts, rate)
        + special.xlog1py(dummies - counts, -rate)
    )
    found: Floats = np.exp(masses)
    return counts, found / found.sum()
