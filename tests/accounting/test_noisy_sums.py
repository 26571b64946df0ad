"""Sums with noise where nobody sees who takes part: exact deltas by sums over all outcomes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from turnout.accounting import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    NoisySums,
    calibrate,
    calibrate_noise,
)
from turnout.errors import InvalidTypeError, InvalidValueError

LAPLACE, GAUSSIAN = "discrete_laplace", "discrete_gaussian"

#: Noise, parameter, and a radius beyond which its mass is below 1e-40.
NOISES = [
    (LAPLACE, 0.3, 40), (LAPLACE, 1.0, 100), (LAPLACE, 1.3, 125),
    (GAUSSIAN, 0.16, 12), (GAUSSIAN, 1.0, 20), (GAUSSIAN, 27.8, 80),
]  # fmt: skip
RATES = [1.0, 0.999, 0.5, 0.1, 1e-3]
#: Of the second computation.
BITS = 200

EPSILONS = [0.0, 0.01, 0.1, 0.4, 1.0, 2.5]


def law_of(noise: str, parameter: float, radius: int) -> dict[int, mpf]:
    """The masses of one noise, from their definition."""
    given = mpf(parameter)
    weights = {
        x: mp.exp(-abs(x) / given if noise == LAPLACE else -(x * x) / (2 * given))
        for x in range(-radius, radius + 1)
    }
    total = mp.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def one_sum(law: dict[int, mpf], rate: mpf, number: int, radius: int) -> list[mpf]:
    """What is seen of one sum, to which a person gives a number or, by a coin, nothing."""
    zero = mpf(0)
    return [
        (1 - rate) * law.get(x, zero) + rate * law.get(x - number, zero)
        for x in range(-radius, radius + 1)
    ]


def hockey_stick(one: list[mpf], other: list[mpf], alpha: mpf) -> mpf:
    gaps = (first - alpha * second for first, second in zip(one, other, strict=True))
    return mp.fsum(gap for gap in gaps if gap > 0)


def exact_delta(
    law: dict[int, mpf], radius: int, rate: float, epsilon: float, adjacency: str
) -> mpf:
    """Sum over all outcomes of a vote: of one sum, or of the two that a replacement moves."""
    alpha, p = mp.exp(mpf(epsilon)), mpf(rate)
    if adjacency != "replace":
        both = [one_sum(law, p, number, radius + 1) for number in (1, 0)]
        return hockey_stick(*(both if adjacency == "remove" else both[::-1]), alpha)
    # Whole numbers, of which so many bits are behind the point.
    still, moved = (
        [int(law.get(x - by, mpf(0)) * 2**BITS) for x in range(-radius, radius + 2)]
        for by in (0, 1)
    )
    taking, factor = int(p * 2**BITS), int(alpha * 2**BITS)
    staying, total = 2**BITS - taking, 0
    for x, y in itertools.product(range(len(still)), repeat=2):
        stays = staying * still[x] * still[y]
        one, two = taking * moved[x] * still[y], taking * still[x] * moved[y]
        total += max(0, ((stays + one) << BITS) - factor * (stays + two))
    return mpf(total) / mpf(2) ** (4 * BITS)


@pytest.mark.parametrize("adjacency", ["replace", "add", "remove"])
@pytest.mark.parametrize(("noise", "parameter", "radius"), NOISES)
def test_delta_is_the_sum_over_all_outcomes_rounded_up(
    noise: str, parameter: float, radius: int, adjacency: str
) -> None:
    with mp.workdps(60):
        law = law_of(noise, parameter, radius)
        for rate in RATES:
            mechanism = NoisySums(noise, parameter, rate)
            for epsilon in EPSILONS[1::3] if radius > 50 else EPSILONS:
                exact = exact_delta(law, radius, rate, epsilon, adjacency)
                found = mpf(mechanism.delta(epsilon, adjacency))
                assert found >= exact - mpf(10) ** -35, (rate, epsilon)
                assert found <= exact * (1 + mpf(10) ** -10) + mpf(10) ** -30, (rate, epsilon)


@pytest.mark.parametrize("adjacency", ["replace", "add", "remove"])
@pytest.mark.parametrize(
    ("noise", "parameter", "largest", "radius"),
    [(LAPLACE, 2.0, 1, 200), (LAPLACE, 2.0, 5, 200), (LAPLACE, 3.5, 20, 330),
     (GAUSSIAN, 0.5, 1, 20), (GAUSSIAN, 2.0, 3, 30), (GAUSSIAN, 80.0, 20, 130),
     (GAUSSIAN, 1.0, 30, 20)],
)  # fmt: skip
def test_numbers_lose_what_the_worst_pair_of_all_numbers_loses(
    noise: str, parameter: float, largest: int, radius: int, adjacency: str
) -> None:
    """All pairs of numbers up to the largest: those between lose no more than its ends."""
    with mp.workdps(60):
        law, width = law_of(noise, parameter, radius), radius + largest
        numbers = range(largest + 1) if largest < 6 else (0, 1, largest // 2, largest - 1, largest)
        for rate, epsilon in itertools.product((1.0, 0.5, 0.05), (0.0, 0.3, 1.2)):
            seen = {number: one_sum(law, mpf(rate), number, width) for number in numbers}
            pairs = {
                "remove": [(number, 0) for number in numbers],
                "add": [(0, number) for number in numbers],
                "replace": list(itertools.product(numbers, repeat=2)),
            }[adjacency]
            alpha = mp.exp(mpf(epsilon))
            exact = max(hockey_stick(seen[one], seen[two], alpha) for one, two in pairs)
            found = mpf(NoisySums(noise, parameter, rate, largest).delta(epsilon, adjacency))
            assert found >= exact - mpf(10) ** -30, (rate, epsilon)
            assert found <= exact * (1 + mpf(10) ** -10) + mpf(10) ** -30, (rate, epsilon)


def counted_delta(
    law: dict[int, mpf], radius: int, rate: float, epsilon: float, pair: tuple[int, int]
) -> float:
    """Sum over all outcomes of two items and of no vote, the third: each with a sum of its own.

    A person who holds one of a pair, and takes part by a coin, is compared with one who holds the
    other.
    """
    still, moved = (
        np.array([float(law.get(x - by, mpf(0))) for x in range(-radius, radius + 2)])
        for by in (0, 1)
    )

    def seen(held: int) -> np.ndarray[Any, Any]:
        total = 0.0
        for place, chance in ((held, rate), (2, 1.0 - rate)):
            sums = [moved if place == index else still for index in range(3)]
            total = total + chance * np.einsum("i,j,k->ijk", *sums)
        return total  # type: ignore[return-value]

    gaps = seen(pair[0]) - math.exp(epsilon) * seen(pair[1])
    return float(gaps[gaps > 0.0].sum())


@pytest.mark.parametrize(
    ("noise", "parameter", "radius"), [(LAPLACE, 0.3, 12), (LAPLACE, 1.0, 36), (GAUSSIAN, 2.0, 14)]
)
def test_where_no_vote_is_counted_delta_is_that_of_three_sums(
    noise: str, parameter: float, radius: int
) -> None:
    law = law_of(noise, parameter, radius)
    for rate, epsilon in itertools.product(RATES, EPSILONS):
        mechanism = NoisySums(noise, parameter, rate, none_counted=True)
        deltas = {
            word: counted_delta(law, radius, rate, epsilon, pair)
            for word, pair in (("remove", (0, 2)), ("add", (2, 0)), ("item", (0, 1)))
        }
        for word in ("remove", "add"):
            assert mechanism.delta(epsilon, word) == pytest.approx(deltas[word], abs=1e-13)
        replaced = mechanism.delta(epsilon)
        assert replaced == pytest.approx(max(deltas.values()), abs=1e-13)
        if noise == LAPLACE:
            # Noise of at most 0 has this chance: what the sum of no vote tells splits the two.
            most = 1.0 / (1.0 + math.exp(-1.0 / parameter))
            split = most * deltas["remove"] + (1.0 - most) * deltas["add"]
            assert deltas["item"] == pytest.approx(split, abs=1e-13)


def test_where_no_vote_is_counted_the_same_noise_protects_less() -> None:
    for rate, scale in itertools.product(RATES, (0.5, 2.0, 40.0)):
        counted = NoisySums(LAPLACE, scale, rate, none_counted=True)
        alone = NoisySums(LAPLACE, scale, rate)
        removed = math.log1p(rate * math.expm1(2.0 / scale))
        added = -math.log1p(rate * math.expm1(-2.0 / scale))
        assert counted.epsilon(0.0, "remove") == pytest.approx(removed, rel=1e-12)
        assert counted.epsilon(0.0, "add") == pytest.approx(added, rel=1e-12)
        assert counted.epsilon(0.0) == counted.epsilon(0.0, "add_or_remove")
        assert counted.delta(counted.epsilon(0.0)) == 0.0
        for word in ("replace", "add", "remove"):
            # Of two sums and a coin more is told by a third one.
            assert (counted.delta(EPSILONS, word) >= alone.delta(EPSILONS, word)).all()
        assert counted.epsilon(0.0) >= alone.epsilon(0.0) * (1.0 - 1e-12)


def test_where_no_vote_is_counted_many_rounds_have_lower_values() -> None:
    bounds = NoisySums(LAPLACE, 40.0, 0.2, none_counted=True).compose(50).epsilon_bounds(1e-6)
    assert bounds.reached == "a person who votes or does not"
    assert 0.9 * bounds.high < bounds.low <= bounds.high


@pytest.mark.parametrize("rate", RATES)
def test_pure_losses_have_closed_forms(rate: float) -> None:
    for scale in (0.5, 2.0, 40.0):
        mechanism = NoisySums(LAPLACE, scale, rate)
        removed = math.log1p(rate * math.expm1(1.0 / scale))
        added = -math.log1p(rate * math.expm1(-1.0 / scale))
        assert mechanism.epsilon(0.0, "remove") == pytest.approx(removed, rel=1e-12)
        assert mechanism.epsilon(0.0, "add") == pytest.approx(added, rel=1e-12)
        assert mechanism.epsilon(0.0) == pytest.approx(removed + added, rel=1e-12)
        assert mechanism.delta(mechanism.epsilon(0.0)) == 0.0
        numbers = mechanism.replace(largest=1)
        assert numbers.epsilon(0.0) == pytest.approx(removed, rel=1e-12)


def test_everybody_in_is_the_noise_alone() -> None:
    pairs: list[tuple[NoisySums, Any]] = [
        (NoisySums(LAPLACE, 3.0), DiscreteLaplaceNoise(3.0)),
        (NoisySums(GAUSSIAN, 25.0), DiscreteGaussianNoise(5.0)),
    ]
    for ours, other in pairs:
        for adjacency in ours.adjacencies:
            assert ours.delta([0.0, 0.1, 0.6], adjacency) == pytest.approx(
                other.delta([0.0, 0.1, 0.6], adjacency), rel=1e-14
            )
        assert ours.compose(20).epsilon(1e-6) == pytest.approx(
            other.compose(20).epsilon(1e-6), rel=1e-9
        )


@pytest.mark.parametrize("largest", [None, 7])
@pytest.mark.parametrize(("noise", "parameter"), [(LAPLACE, 4.0), (GAUSSIAN, 30.0)])
def test_nobody_in_loses_nothing_and_more_people_in_lose_more(
    noise: str, parameter: float, largest: int | None
) -> None:
    rates = (0.0, 1e-12, 1e-3, 0.2, 0.9, 1.0)
    for adjacency in ("replace", "add", "remove"):
        deltas = [NoisySums(noise, parameter, p, largest).delta(0.2, adjacency) for p in rates]
        assert deltas[0] == 0.0
        assert all(one <= two for one, two in itertools.pairwise(deltas))


@pytest.mark.parametrize("adjacency", ["replace", "add", "remove"])
@pytest.mark.parametrize(
    ("noise", "parameter", "rate"),
    [(LAPLACE, 1.0, 0.4), (GAUSSIAN, 0.7, 0.25), (LAPLACE, 1.0, 1.0)],
)
def test_two_rounds_lose_what_all_pairs_of_outcomes_lose(
    noise: str, parameter: float, rate: float, adjacency: str
) -> None:
    radius = 30 if noise == LAPLACE else 9
    with mp.workdps(20):
        law = {x: float(mass) for x, mass in law_of(noise, parameter, radius).items()}
    width = np.arange(-radius, radius + 2)
    still = np.array([law.get(int(x), 0.0) for x in width])
    moved = np.array([law.get(int(x) - 1, 0.0) for x in width])
    mixed = (1.0 - rate) * still + rate * moved
    if adjacency == "replace":
        stays = (1.0 - rate) * np.outer(still, still)
        one = (stays + rate * np.outer(moved, still)).ravel()
        two = (stays + rate * np.outer(still, moved)).ravel()
    else:
        one, two = (mixed, still) if adjacency == "remove" else (still, mixed)
    # Outcomes of equal loss are one: what is left is few enough for all pairs.
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.round(np.log(one) - np.log(two), 9)
    keys, places = np.unique(losses[np.isfinite(losses)], return_inverse=True)
    kept = np.isfinite(losses)
    one, two = (np.bincount(places, mass[kept], keys.size) for mass in (one, two))
    rounds = NoisySums(noise, parameter, rate).compose(2, adjacency)
    for epsilon in (0.1, 0.7):
        gaps = np.outer(one, one) - math.exp(epsilon) * np.outer(two, two)
        exact = float(gaps[gaps > 0.0].sum())
        low, high = rounds.delta_bounds(epsilon)
        assert low <= exact * (1 + 1e-7) + 1e-11
        assert exact - 1e-9 <= high <= exact * 1.01 + 1e-9


@pytest.mark.slow
def test_numbers_in_many_rounds_have_lower_values_that_name_the_data() -> None:
    bounds = NoisySums(GAUSSIAN, 900.0, 0.2, 20).compose(50).epsilon_bounds(1e-6)
    assert bounds.reached == "a person who gives the largest number or 0"
    assert 0.9 * bounds.high < bounds.low <= bounds.high
    votes = NoisySums(GAUSSIAN, 9.0, 0.2).compose(50).epsilon_bounds(1e-6)
    assert votes.exact
    assert 0.99 * votes.high < votes.low <= votes.high


@pytest.mark.parametrize("rate", [1.0, 0.2])
@pytest.mark.parametrize("largest", [None, 10])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_the_least_noise_reaches_the_target_and_less_does_not(
    noise: str, largest: int | None, rate: float
) -> None:
    mechanism = NoisySums(noise, 1.0, rate, largest)
    found = calibrate_noise(mechanism, 0.5, 1e-6)
    assert mechanism.replace(parameter=found).delta(0.5) <= 1e-6
    assert mechanism.replace(parameter=found * (1 - 1e-6)).delta(0.5) > 1e-6
    best = calibrate(mechanism.replace(parameter=found), "rate", 0.5, 1e-6)
    assert best == pytest.approx(rate, rel=1e-6)


def test_the_noise_of_the_smaller_variance_is_chosen() -> None:
    chosen = set()
    for epsilon, delta, rate, largest in itertools.product(
        (0.05, 1.0), (1e-2, 1e-6), (1.0, 0.3), (None, 5)
    ):
        found = NoisySums._smallest(epsilon, delta, rate, largest)
        assert found.delta(epsilon) <= delta
        chosen.add(found.noise)
        for noise in (LAPLACE, GAUSSIAN):
            other = NoisySums(noise, 1.0, rate, largest)
            value = calibrate_noise(other, epsilon, delta)
            assert found._variance <= other.replace(parameter=value)._variance
    assert chosen == {LAPLACE, GAUSSIAN}
    assert NoisySums._smallest(1.0, 0.0).parameter == 2.0


def test_the_variance_of_next_to_no_noise_is_a_number() -> None:
    # Whoever asks for next to no privacy gets next to no noise.
    for epsilon, delta in ((1.0, 1.0), (1e4, 1e-6)):
        assert 0.0 <= NoisySums._smallest(epsilon, delta)._variance < 1e-9


def test_variances_are_sums_over_the_law() -> None:
    for noise, parameter, radius in NOISES:
        with mp.workdps(30):
            law = law_of(noise, parameter, radius)
            exact = mp.fsum(x * x * mass for x, mass in law.items())
        assert NoisySums(noise, parameter)._variance == pytest.approx(float(exact), rel=1e-12)


def test_extreme_parameters_give_numbers() -> None:
    for noise, parameter in (
        (LAPLACE, 1e-100),
        (LAPLACE, 1e12),
        (GAUSSIAN, 1e-100),
        (GAUSSIAN, 1e7),
    ):
        for rate, largest in itertools.product((1e-300, 0.5, 1.0), (None, 1, 1000)):
            mechanism = NoisySums(noise, parameter, rate, largest)
            for adjacency in ("replace", "add", "remove"):
                deltas = mechanism.delta([0.0, 1e-9, 1.0, 700.0, 1e9, 1e200], adjacency)
                assert ((deltas >= 0.0) & (deltas <= 1.0)).all()
                assert (np.diff(deltas) <= 1e-12).all()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("gaussian", 1.0), "noise must be one of"),
        ((LAPLACE, 0.0), "parameter must be from 1e-100 to 1e"),
        ((LAPLACE, 1.0, 1.5), "rate must be a probability"),
        ((LAPLACE, 1.0, 1.0, 0), "largest must be"),
        ((GAUSSIAN, 1e9, 0.5), "parameter must be from 1e-100 to 1e"),
        ((LAPLACE, 1.0, 1.0, 5, True), "none_counted must be False for numbers"),
    ],
)
def test_what_cannot_be_is_refused(arguments: Any, match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        NoisySums(*arguments)
    with pytest.raises(InvalidTypeError):
        NoisySums(LAPLACE, "1")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="none_counted must be a bool"):
        NoisySums(LAPLACE, 1.0, none_counted=1)  # type: ignore[arg-type]
