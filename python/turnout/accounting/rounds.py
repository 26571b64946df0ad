"""How many rounds a budget pays for."""

from __future__ import annotations

import math
from collections.abc import Callable

#: The largest number of rounds.
MOST_ROUNDS = 10**9

#: How many times more rounds are tried at once.
_LONGEST_JUMP = 32.0


def largest_within(total: Callable[[int], float], budget: float) -> int:
    """Find the largest number of rounds whose total is within a budget.

    Parameters
    ----------
    total
        Gives the total of a number of rounds of at least 1; it grows with the rounds.
    budget
        A number above 0.

    Returns
    -------
    int
        From 0 to :data:`MOST_ROUNDS`: the total of this many is within the budget, and that of one
        more is not.

    Examples
    --------
    >>> largest_within(lambda rounds: 0.3 * rounds**0.5, 3.0)
    100
    """
    low, low_total = 0, 0.0
    high, high_total = 1, total(1)
    while high_total <= budget:
        if high == MOST_ROUNDS:
            return high
        further = 2 * high
        if 0.0 < low_total < high_total:
            # Epsilon is close to a power of the number of rounds, seldom below the square root.
            power = math.log(high_total / low_total) / math.log(high / low)
            factor = min((budget / high_total) ** (1.0 / max(power, 0.5)), _LONGEST_JUMP)
            further = max(further, math.ceil(high * factor))
        low, low_total = high, high_total
        high = min(further, MOST_ROUNDS)
        high_total = total(high)
    step = 0
    while high - low > 1:
        step += 1
        middle = (low + high) // 2
        if step % 3 and low_total > 0.0 and math.isfinite(high_total):
            share = math.log(budget / low_total) / math.log(high_total / low_total)
            middle = math.floor(low * (high / low) ** share)
        middle = min(max(middle, low + 1), high - 1)
        found = total(middle)
        if found <= budget:
            low, low_total = middle, found
        else:
            high, high_total = middle, found
    return low
