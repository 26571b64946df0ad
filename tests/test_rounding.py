"""Rationals become floats in the direction that promises less, however large they are."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import pytest

from turnout._rounding import rounded_down, rounded_up


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(-1, 3), Fraction(10), Fraction(1, 10**400), Fraction(0)]
)
def test_the_neighbours_of_a_rational_are_around_it(value: Fraction) -> None:
    down, up = rounded_down(value), rounded_up(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))


def test_what_no_float_holds_is_rounded_to_the_largest_or_to_infinity() -> None:
    large, most = Fraction(10**400), sys.float_info.max
    assert (rounded_down(large), rounded_up(large)) == (most, math.inf)
    assert (rounded_down(-large), rounded_up(-large)) == (-math.inf, -most)
