"""Tails of the binomial law, and the numbers of trials that a tail bound allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from turnout._types import Floats, Integers, Truths


def at_least(trials: Any, least: Any, rate: float) -> Floats:
    """Return ``P[Bin(trials, rate) >= least]``, interpolated smoothly between whole trials.

    Examples
    --------
    >>> at_least(2, [0, 1, 2, 3], 0.5)
    array([1.  , 0.75, 0.25, 0.  ])
    """
    # It takes longer to import than all of turnout.
    from scipy import special  # noqa: PLC0415

    trials, least = np.broadcast_arrays(trials, least)
    result = np.where(least <= 0, 1.0, 0.0)
    inside = (least > 0) & (least <= trials)
    result[inside] = special.betainc(least[inside], trials[inside] - least[inside] + 1.0, rate)
    return result


def first(holds: Callable[[Integers], Truths], size: int, most: int) -> Integers:
    """Find the least number from 0 to ``most`` that meets a monotone condition, or ``most + 1``.

    Examples
    --------
    >>> first(lambda numbers: numbers**2 >= np.array([10, 25, 1000]), size=3, most=20)
    array([ 4,  5, 21])
    """
    below = np.full(size, -1, np.int64)
    above = np.full(size, most + 1, np.int64)
    while (above - below > 1).any():
        middle = (below + above) // 2
        yes = holds(np.clip(middle, 0, most)) & (middle >= 0)
        above = np.where(yes, middle, above)
        below = np.where(yes, below, middle)
    return above
