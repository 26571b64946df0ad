"""Rationals rounded to floats in the direction that promises less."""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from fractions import Fraction

#: Digits of logarithms that are rounded up.
_DIGITS = 60


def rounded_up(value: Fraction) -> float:
    """Round a rational up to a float.

    Examples
    --------
    >>> rounded_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def rounded_down(value: Fraction) -> float:
    """Round a rational down to a float.

    Examples
    --------
    >>> rounded_down(Fraction(1, 3)) <= Fraction(1, 3)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return -math.inf if value < 0 else sys.float_info.max
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def logarithm_up(ratio: Fraction) -> float:
    """Give the natural logarithm of a rational of at least one, rounded up to a float.

    Examples
    --------
    >>> logarithm_up(Fraction(1))
    0.0
    """
    context = Context(prec=_DIGITS)
    exact = context.subtract(
        Decimal(ratio.numerator).ln(context), Decimal(ratio.denominator).ln(context)
    )
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)
