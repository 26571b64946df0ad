"""Intervals around shrunken estimates that cover on average over the answers.

Armstrong, Kolesar, Plagborg-Moller, "Robust empirical Bayes confidence intervals" (2022).
"""

from __future__ import annotations

import numpy as np

from turnout._types import Floats
from turnout.errors import EstimatorError

#: Above so many ratios the critical values come from a table, each of the next larger ratio.
_TABLE = 300


def _worst(ratio: Floats, chi: Floats) -> Floats:
    """Give the largest rate of misses of ``N(b, 1)`` beyond ``chi``, where ``E b^2`` is the ratio.

    The least concave majorant, in the ratio ``t``, of ``Phi(sqrt t - chi) + Phi(-sqrt t - chi)``:
    a line from zero to where it touches, and the function itself beyond.
    """
    from scipy import special  # noqa: PLC0415

    def misses(bias: Floats, chi: Floats) -> Floats:
        result: Floats = special.ndtr(bias - chi) + special.ndtr(-bias - chi)
        return result

    start = 2 * special.ndtr(-chi)
    # The chord from zero to b^2 is steepest where it touches: before the slope is above the chord.
    low, high = np.maximum(chi - 2.0, 0.0), chi + 2.0 + np.sqrt(2 * np.log1p(chi))
    for _ in range(45):
        middle = (low + high) / 2
        density = np.exp(-0.5 * (middle - chi) ** 2) - np.exp(-0.5 * (middle + chi) ** 2)
        slope = density / np.sqrt(2 * np.pi) * middle / 2
        rising = slope > misses(middle, chi) - start
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    # Up to chi = sqrt 3 the function is concave itself.
    touch = np.where(chi <= np.sqrt(3.0), 0.0, high)
    bias = np.sqrt(ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        line = start + (misses(touch, chi) - start) * ratio / touch**2
    return np.where(bias < touch, line, misses(bias, chi))


def critical_values(ratio: Floats, level: float) -> Floats:
    """Find how many standard errors cover, if the squared biases have these means.

    Parameters
    ----------
    ratio
        The mean square of the bias over the variance, each at least 0.
    level
        The confidence level.

    Returns
    -------
    numpy.ndarray
        float64.

    Examples
    --------
    >>> critical_values(np.array([0.0, 1.0, 4.0]), 0.95).round(5)
    array([1.95996, 3.2592 , 7.21635])
    """
    distinct, where = np.unique(ratio, return_inverse=True)
    if distinct.size > _TABLE:
        table = distinct[np.linspace(0, distinct.size - 1, _TABLE).astype(np.int64)]
        return critical_values(table, level)[np.searchsorted(table, ratio)]
    tail = 1.0 - level
    low = np.zeros_like(distinct)
    # Chebyshev: the second moment of what is to be covered is 1 + t.
    high = np.sqrt((1.0 + distinct) / tail) + 1.0
    for _ in range(45):
        middle = (low + high) / 2
        missing = _worst(distinct, middle) > tail
        low, high = np.where(missing, middle, low), np.where(missing, high, middle)
    result: Floats = high[where]
    return result


def average_interval(frequencies: Floats, variances: Floats, level: float) -> tuple[Floats, Floats]:
    """Give limits that hold the truth in a share ``level`` of the answers, or more.

    Centred at estimates drawn linearly towards the mean frequency, ``1 / k``, by the ratio of what
    is true variance between the answers. Where the estimates vary no more than by their errors, the
    true variance is taken for as large as can be missed.

    Raises
    ------
    EstimatorError
        If a variance is not known, or there are fewer than two answers.
    """
    size = frequencies.size
    if size < 2 or not np.isfinite(variances).all():
        raise EstimatorError(
            "an interval on average over the answers needs at least two answers, all with standard "
            f"errors, and there are {int(np.isfinite(variances).sum())}"
        )
    mean = 1.0 / size
    between = float(((frequencies - mean) ** 2 - variances).mean())
    total = float(variances.sum())
    floor = 2.0 * float(variances @ variances) / (size * total) if total else 0.0
    between = max(between, floor)
    if between <= 0.0:
        return frequencies.copy(), frequencies.copy()
    share = between / (between + variances)
    centre = mean + share * (frequencies - mean)
    half = critical_values(variances / between, level) * share * np.sqrt(variances)
    return centre - half, centre + half
