"""Search for where a decreasing function falls to a target, on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

#: The relative width at which a search ends; the safe end of the bracket is the answer.
WIDTH = 2.0**-44

_LOWEST = -1e4
_SMALLEST = 5e-324


def first_at_most(
    function: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    width: float = WIDTH,
) -> float:
    """Find the smallest argument at which a decreasing function is at most a target.

    It uses the ITP method (Oliveira and Takahashi, 2021) on the logarithm of the function. The
    method is at most one step slower than bisection, and superlinear where the logarithm is smooth.

    Parameters
    ----------
    function
        A decreasing function with values of at least 0.
    target
        A number above 0, or 0 for a function that reaches 0.
    low, high
        A bracket of non-negative numbers: the function is above the target at ``low`` and at most
        the target at ``high``.
    width
        The width of the last bracket, relative to its upper end.

    Returns
    -------
    float
        The upper end of the last bracket, where the function *is* at most the target.

    Examples
    --------
    >>> first_at_most(lambda x: 2.0**-x, 0.25, 0.0, 10.0)
    2.0
    """
    goal = _logarithm(target)

    def level(argument: float) -> float:
        value = function(argument)
        distance = _logarithm(value) - goal
        # A tie is on the safe side; no level is zero.
        return max(_SMALLEST, distance) if value > target else min(-_SMALLEST, distance)

    at_low, at_high = level(low), level(high)
    first = high - low
    half = max(0.5 * width * high, _SMALLEST)
    budget = math.ceil(math.log2(max(2.0, 0.5 * first / half))) + 1
    step = 0
    while high - low > max(width * high, _SMALLEST):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        secant = low + (high - low) * (at_low / (at_low - at_high))
        # Truncate towards the middle, and stay where bisection's pace can be kept.
        side = math.copysign(1.0, middle - secant)
        shift = min(0.2 * (high - low) ** 2 / first, abs(middle - secant))
        guess = secant + side * shift
        reach = max(0.0, half * 2.0 ** (budget - step) - 0.5 * (high - low))
        if abs(guess - middle) > reach:
            guess = middle - side * reach
        if not low < guess < high:
            guess = middle
        at_guess = level(guess)
        if at_guess > 0.0:
            low, at_low = guess, at_guess
        else:
            high, at_high = guess, at_guess
        step += 1
        half = max(half, 0.5 * width * high)
    return high


def least_at_most(
    function: Callable[[float], float],
    target: float,
    *,
    least: float = 0.0,
    most: float = math.inf,
    width: float = WIDTH,
) -> float:
    """Find the smallest argument of any size at which a decreasing function is at most a target.

    Parameters
    ----------
    function, target, width
        As for :func:`first_at_most`.
    least, most
        The ends of the search range, at most 1 and at least 1. The search doubles or halves from 1
        on.

    Returns
    -------
    float
        An argument where the function *is* at most the target: the smallest one, or one below twice
        ``least``. Infinity if no argument up to ``most`` reaches the target.

    Examples
    --------
    >>> round(least_at_most(lambda x: 2.0**-x, 1e-9), 6)
    29.897353
    >>> least_at_most(lambda x: 2.0**-x, 1e-9, most=20.0)
    inf
    """
    low = high = 1.0
    if function(1.0) > target:
        while function(high) > target:
            if high >= most:
                return math.inf
            low, high = high, min(2.0 * high, most)
    else:
        while function(low) <= target:
            low, high = 0.5 * low, low
            if low < least:
                return high
    return first_at_most(function, target, low, high, width)


def _logarithm(value: float) -> float:
    return math.log(value) if value > 0.0 else _LOWEST
