"""Tails against sums of exact rationals, and the search against trying every number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from turnout._binomial import at_least, first


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.25, 0.5, 1.0])
def test_tails_are_sums_of_the_law(rate: float) -> None:
    exact = Fraction(rate)
    for trials in range(9):
        masses = [
            math.comb(trials, count) * exact**count * (1 - exact) ** (trials - count)
            for count in range(trials + 1)
        ]
        for least in range(-1, trials + 3):
            expected = float(sum(masses[max(least, 0) :]))
            assert float(at_least(trials, least, rate)) == pytest.approx(expected, rel=1e-12)


def test_tails_are_given_for_all_of_an_array() -> None:
    found = at_least(np.arange(5)[:, None], np.arange(4)[None, :], 0.25)
    assert found.shape == (5, 4)
    assert found[3, 2] == float(at_least(3, 2, 0.25))


@pytest.mark.parametrize("most", [0, 1, 7, 8])
def test_the_first_number_where_a_condition_holds_is_found(most: int) -> None:
    edges = np.arange(-2, most + 4)
    found = first(lambda numbers: numbers >= edges, edges.size, most)
    assert found.tolist() == [min(max(edge, 0), most + 1) for edge in edges.tolist()]
