"""Exact limits of sampled counts cover with their level, by summation over all outcomes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from turnout.distributed.sampled import exact_sampling_limits, summable


def binomial(trials: int, rate: Fraction) -> list[Fraction]:
    return [
        math.comb(trials, count) * rate**count * (1 - rate) ** (trials - count)
        for count in range(trials + 1)
    ]


def law(held: int, dummies: int, rates: tuple[Fraction, Fraction]) -> list[Fraction]:
    total = [Fraction(0)] * (held + dummies + 1)
    for one, first in enumerate(binomial(held, rates[0])):
        for two, second in enumerate(binomial(dummies, rates[1])):
            total[one + two] += first * second
    return total


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("rates", [(0.75, 0.75), (0.25, 0.75), (0.5, 0.125)])
@pytest.mark.parametrize("dummies", [0, 3, 8])
def test_limits_cover_every_count(dummies: int, rates: tuple[float, float], level: float) -> None:
    users = 12
    sums = np.arange(users + dummies + 1)
    low, high = exact_sampling_limits(sums, users, rates, dummies, level)
    exact = (Fraction(rates[0]), Fraction(rates[1]))
    for held in range(users + 1):
        masses = law(held, dummies, exact)
        covered = sum(
            mass
            for seen, mass in enumerate(masses)
            if low[seen] * users <= held + 1e-9 and held - 1e-9 <= high[seen] * users
        )
        assert covered >= level
    # Every limit is as tight as whole numbers allow: one further in, and a tail is too small.
    tail = (1 - level) / 2
    for seen in range(users + dummies + 1):
        least, most = round(low[seen] * users), round(high[seen] * users)
        if 0 < least <= users:
            assert sum(law(least - 1, dummies, exact)[seen:]) < tail
        if 0 < most < users:
            assert sum(law(most + 1, dummies, exact)[: seen + 1]) < tail


def test_dummies_with_the_same_coin_are_like_other_holders() -> None:
    sums = np.array([5, 30, 77])
    same = exact_sampling_limits(sums, 100, (0.3, 0.3), 40, 0.95)
    nearly = exact_sampling_limits(sums, 100, (0.3, math.nextafter(0.3, 1)), 40, 0.95)
    np.testing.assert_array_equal(same, nearly)


def test_limits_of_many_users_agree_with_the_normal_law() -> None:
    users, rate = 1_000_000, 0.4
    low, high = exact_sampling_limits(np.array([80_000]), users, (rate, rate), 0, 0.95)
    error = math.sqrt(80_000 * (1 - rate)) / rate / users
    assert low[0] == pytest.approx(0.2 - 1.96 * error, rel=2e-4)
    assert high[0] == pytest.approx(0.2 + 1.96 * error, rel=2e-4)


def test_sums_over_dummies_are_limited() -> None:
    assert summable(40_000, 0.5)
    assert not summable(41_000, 0.5)
