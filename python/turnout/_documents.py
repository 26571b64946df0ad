"""Numbers in documents from elsewhere: JSON, and exact rationals as text.

A number of a few bytes can stand for one that fills the memory (``1e999999999`` as a fraction), and
one of many digits takes time in the square of their number to read. All readers of documents read
their numbers here: at most :data:`MOST_DIGITS` digits, and nothing that floating point cannot hold;
nor the words NaN and Infinity, which are no JSON.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any, NoReturn

__all__ = ["MOST_DIGITS", "decoder", "parsed", "rational"]

#: The most digits of a whole number: of a fraction, of its numerator and of its denominator.
MOST_DIGITS = 1000

_RATIONAL = re.compile(rf"(-?[0-9]{{1,{MOST_DIGITS}}})(?:/([0-9]{{1,{MOST_DIGITS}}}))?", re.ASCII)
_SHOWN = 20


def parsed(text: str | bytes | bytearray) -> Any:
    """Read JSON as :func:`json.loads` does, with bounded numbers.

    Raises
    ------
    ValueError
        If it is no JSON, or holds a number of too many digits or out of range.
    RecursionError
        If it is nested thousands deep.

    Examples
    --------
    >>> parsed('{"nodes":3,"rate":1e-2}')
    {'nodes': 3, 'rate': 0.01}
    >>> parsed("1e999")
    Traceback (most recent call last):
        ...
    ValueError: the number 1e999 is out of the range of floating point
    """
    return json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant)


def decoder(**options: Any) -> json.JSONDecoder:
    """Make a decoder of JSON with bounded numbers; its options are :class:`json.JSONDecoder`'s."""
    return json.JSONDecoder(
        parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant, **options
    )


def rational(text: str) -> Fraction:
    """Read what ``str`` of a fraction gives: a whole number, or two with a slash between them.

    Raises
    ------
    ValueError
        If it is anything else, or has more than :data:`MOST_DIGITS` digits.
    ZeroDivisionError
        If the denominator is zero.

    Examples
    --------
    >>> rational("-3"), rational("1/3")
    (Fraction(-3, 1), Fraction(1, 3))
    >>> rational("1e999999999")
    Traceback (most recent call last):
        ...
    ValueError: 1e999999999 is no fraction of at most 1000 digits
    """
    match = _RATIONAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{_brief(text)} is no fraction of at most {MOST_DIGITS} digits")
    return Fraction(int(match[1]), int(match[2] or 1))


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {_brief(text)} has more than {MOST_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {_brief(text)} has more than {MOST_DIGITS} digits")
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {_brief(text)} is out of the range of floating point")
    return value


def _refuse_constant(word: str) -> NoReturn:
    # NaN, Infinity, -Infinity: words that Python takes for numbers, and JSON does not have.
    raise ValueError(f"the word {word} is no number of JSON")


def _brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
