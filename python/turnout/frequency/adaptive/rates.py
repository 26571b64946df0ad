"""Participation rates that are larger for rare answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.projection import PROJECTIONS


def rates_for_rare(
    frequencies: Any, *, rate: float, low: float, high: float, power: float = 1.0
) -> Floats:
    """Give each answer a rate in inverse proportion to its frequency, within limits.

    ``pi_x = clip(s / f_x^power, low, high)`` with the ``s`` for which ``sum f_x pi_x = rate``, so
    that the expected share of nodes that report is ``rate`` if the frequencies are true.

    Parameters
    ----------
    frequencies
        One estimated frequency for each answer; made a distribution by ``"norm_sub"``.
    rate
        The share of nodes that shall report, from ``low`` to ``high``.
    low, high
        The limits of the rates, in (0, 1].
    power
        How strongly the rates follow the frequencies: 1 for inverse proportion, 0 for one rate.

    Returns
    -------
    numpy.ndarray
        One rate for each answer, float64.

    Raises
    ------
    InvalidValueError
        If the limits or the rate are not in order, or the power is negative.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> rates_for_rare([0.8, 0.16, 0.04], rate=0.1, low=0.05, high=0.5).round(4)
    array([0.05, 0.25, 0.5 ])
    """
    least = _arguments.probability("low", low)
    most = _arguments.probability("high", high)
    target = _arguments.probability("rate", rate)
    if not least <= target <= most:
        raise InvalidValueError(
            f"rate must be from low = {least} to high = {most}, got {target}: no rates within "
            "these limits have that mean"
        )
    exponent = _arguments.number("power", power)
    if not 0.0 <= exponent < np.inf:
        raise InvalidValueError(f"power must be at least 0 and finite, got {exponent}")
    given = np.asarray(frequencies, dtype=np.float64)
    given = _arguments.frequencies("frequencies", frequencies, given.size)
    shares = PROJECTIONS["norm_sub"](given)
    if exponent == 0.0:
        return np.full(shares.size, target)
    # In logarithms, from the rarest answer on: s / f^power overflows for frequencies near 0.
    with np.errstate(divide="ignore"):
        weights = -exponent * np.log(shares)
    some = np.isfinite(weights)
    start = np.log(least) - weights[some].max() - 1.0
    stop = np.log(most) - weights[some].min() + 1.0

    def rates(shift: float) -> Floats:
        clipped = np.clip(weights + shift, np.log(least), np.log(most))
        result: Floats = np.clip(np.exp(clipped), least, most)
        return result

    for _ in range(100):
        middle = 0.5 * (start + stop)
        if float(shares @ rates(middle)) < target:
            start = middle
        else:
            stop = middle
    return rates(start)
