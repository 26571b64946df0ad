"""Rationals rounded to floats in the safe direction."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

#: Digits of logarithms that are rounded up.
_DIGITS = 60

#: So many digits are written.
_WRITTEN = 5


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
    """Return the natural logarithm of a rational of at least one, rounded up to a float.

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


def written_up(value: float, digits: int = _WRITTEN) -> str:
    """Write an upper limit with a few digits, rounded up.

    Examples
    --------
    >>> written_up(0.123451), written_up(0.5), written_up(float("inf"))
    ('0.12346', '0.5', 'none')
    """
    return _written(value, digits, ROUND_CEILING)


def written_down(value: float, digits: int = _WRITTEN) -> str:
    """Write a lower limit with a few digits, rounded down.

    Examples
    --------
    >>> written_down(0.123459), written_down(1e-9)
    ('0.12345', '1e-09')
    """
    return _written(value, digits, ROUND_FLOOR)


def _written(value: float, digits: int, rounding: str) -> str:
    return "none" if math.isinf(value) else f"{rounded_to(value, digits, rounding):.{digits}g}"


def rounded_to(value: float, digits: int, rounding: str) -> float:
    """Round a number to some significant digits, in a direction of :mod:`decimal`.

    Examples
    --------
    >>> rounded_to(0.12345, 2, ROUND_CEILING)
    0.13
    """
    # The shortest text of the number is what people read and type.
    return float(Context(prec=digits, rounding=rounding).plus(Decimal(repr(float(value)))))
