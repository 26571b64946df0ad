"""Means as people read them: with as many digits as their standard errors give."""

from __future__ import annotations

import math
from collections.abc import Iterable

from turnout.bounds import Bounds
from turnout.reporting.words import number

#: Numbers with more decimals, and larger ones, are written with an exponent.
_MOST_DECIMALS, _LARGEST = 8, 1e15


def span(bounds: Bounds) -> str:
    """Say which numbers can be given.

    Examples
    --------
    >>> span(Bounds(0, 24)), span(Bounds(-0.5, 10_000.0, dimensions=3))
    ('from 0 to 24', '3 of each person, from -0.5 to 10000')
    """
    several = f"{bounds.dimensions:,} of each person, " if bounds.dimensions > 1 else ""
    return f"{several}from {number(bounds.low)} to {number(bounds.high)}"


def decimals(errors: Iterable[float]) -> int | None:
    """Decimals that show every standard error with two digits or more; None for exponents.

    Examples
    --------
    >>> decimals([0.031, 2.0]), decimals([250.0]), decimals([math.nan]), decimals([1e-30])
    (3, 0, 2, None)
    """
    least = min((error for error in errors if math.isfinite(error) and error > 0), default=0.1)
    needed = max(0, 1 - math.floor(math.log10(least)))
    return needed if needed <= _MOST_DECIMALS else None


def rounded(value: float, digits: int | None) -> str:
    """Write a number with so many decimals.

    Examples
    --------
    >>> rounded(7.4321, 2), rounded(-0.001, 1), rounded(1e20, 2), rounded(1.5e-20, None)
    ('7.43', '0.0', '1e+20', '1.5e-20')
    """
    if digits is None or abs(value) >= _LARGEST:
        return f"{value:.6g}"
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def limits(low: float | None, high: float | None, digits: int | None) -> str:
    """Write an interval.

    Examples
    --------
    >>> limits(7.31, 7.49, 1), limits(None, None, 1)
    ('7.3 – 7.5', 'none')
    """
    if low is None or high is None:
        return "none"
    return f"{rounded(low, digits)} – {rounded(high, digits)}"
