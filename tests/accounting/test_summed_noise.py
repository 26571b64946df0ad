"""Sums of discrete Gaussians: deltas by plain convolution with fifty digits, and limits."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import pytest
from mpmath import mp, mpf

import turnout.accounting as ta
from turnout.errors import InvalidTypeError, InvalidValueError

DIGITS = 50


def convolved(one: Sequence[mpf], other: Sequence[mpf]) -> list[mpf]:
    """Convolve two laws on symmetric intervals; ends below 1e-45 are cut."""
    law = [mpf(0)] * (len(one) + len(other) - 1)
    for x, p in enumerate(one):
        for y, q in enumerate(other):
            law[x + y] += p * q
    keep = next(index for index, mass in enumerate(law) if mass > mpf(10) ** -45)
    return law[keep : len(law) - keep]


@functools.lru_cache
def law_of(variance: float, pieces: int) -> tuple[mpf, ...]:
    """Add up pieces: by halves, and one more where their number is odd."""
    with mp.workdps(DIGITS):
        if pieces == 1:
            radius = math.ceil(math.sqrt(230 * variance)) + 1
            weights = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(variance))) for x in range(1, radius)]
            total = 1 + 2 * sum(weights)
            half = [weight / total for weight in weights]
            return (*half[::-1], 1 / total, *half)
        half_law = law_of(variance, pieces // 2)
        law = convolved(half_law, half_law)
        return tuple(convolved(law, law_of(variance, 1)) if pieces % 2 else law)


def delta_of(law: Sequence[mpf], epsilon: float, adjacency: str) -> mpf:
    """Sum over all outcomes."""
    with mp.workdps(DIGITS):
        alpha = mp.exp(mpf(epsilon))
        shifted = list(zip([*law, mpf(0)], [mpf(0), *law], strict=True))
        if adjacency == "add":
            return sum((max(mpf(0), p - alpha * q) for p, q in shifted), mpf(0))
        return sum(
            (
                gap
                for (p, q), (r, s) in itertools.product(shifted, repeat=2)
                if (gap := p * r - alpha * q * s) > 0
            ),
            mpf(0),
        )


@pytest.mark.parametrize("adjacency", ["replace", "add"])
@pytest.mark.parametrize(
    ("variance", "pieces"),
    [(0.02, 50), (0.05, 3), (0.116, 1000), (0.2, 37), (0.5, 2), (0.7, 5), (3.0, 2), (6.3, 3)],
)
def test_delta_is_the_sum_over_all_outcomes_rounded_up(
    variance: float, pieces: int, adjacency: str
) -> None:
    noise = ta.SummedDiscreteGaussianNoise(variance, pieces)
    for epsilon in (0.0, 0.3, 1.0):
        exact = delta_of(law_of(variance, pieces), epsilon, adjacency)
        found = noise.delta(epsilon, adjacency=adjacency)
        with mp.workdps(DIGITS):
            assert mpf(found) >= exact - mpf(10) ** -40
            assert mpf(found) <= exact * (1 + mpf(10) ** -12) + mpf(10) ** -40


@pytest.mark.parametrize(("variance", "pieces"), [(0.3, 1700), (2.2, 150)])
def test_wide_sums_for_one_count_are_the_sum_over_all_outcomes(
    variance: float, pieces: int
) -> None:
    noise = ta.SummedDiscreteGaussianNoise(variance, pieces)
    assert noise._total_variance > 256
    for epsilon in (0.0, 0.05, 0.2):
        exact = float(delta_of(law_of(variance, pieces), epsilon, "add"))
        found = noise.delta(epsilon, adjacency="add")
        assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-10) + 1e-17


@pytest.mark.parametrize(("variance", "pieces"), [(0.03, 7), (0.116, 1000), (1.0, 40), (7.0, 9)])
def test_the_total_variance_is_that_of_the_law(variance: float, pieces: int) -> None:
    law = law_of(variance, pieces)
    middle = len(law) // 2
    with mp.workdps(DIGITS):
        exact = sum((x - middle) ** 2 * mass for x, mass in enumerate(law))
    noise = ta.SummedDiscreteGaussianNoise(variance, pieces)
    assert noise._total_variance == pytest.approx(float(exact), rel=1e-13)
    assert noise._piece_variance == pytest.approx(float(exact) / pieces, rel=1e-13)


@pytest.mark.parametrize("variance", [0.04, 0.9, 27.83, 1e5])
def test_one_piece_is_discrete_gaussian_noise(variance: float) -> None:
    scale = math.sqrt(variance)
    for epsilon, adjacency in itertools.product((0.0, 0.003, 0.5, 1.0), ("replace", "add")):
        one = ta.DiscreteGaussianNoise(scale).delta(epsilon, adjacency=adjacency)
        found = ta.SummedDiscreteGaussianNoise(variance, 1).delta(epsilon, adjacency=adjacency)
        assert found == pytest.approx(one, rel=1e-9)


def test_pieces_of_some_size_add_up_to_one_discrete_gaussian_and_small_ones_to_skellam() -> None:
    def deltas(noise: ta.Mechanism) -> list[float]:
        return [noise.delta(epsilon) for epsilon in (0.1, 0.5, 1.0)]

    wide = deltas(ta.SummedDiscreteGaussianNoise(3.0, 10))
    assert deltas(ta.DiscreteGaussianNoise(math.sqrt(30.0))) == pytest.approx(wide, rel=1e-8)
    tiny = ta.SummedDiscreteGaussianNoise(0.036, 10**7)
    skellam = deltas(ta.SkellamNoise(tiny._total_variance / 2))
    assert deltas(tiny) == pytest.approx(skellam, rel=1e-5)
    # In between it is neither.
    middle = ta.SummedDiscreteGaussianNoise(0.116, 1000)
    gaussian = ta.DiscreteGaussianNoise(math.sqrt(middle._total_variance))
    skellam_noise = ta.SkellamNoise(middle._total_variance / 2)
    assert skellam_noise.delta(1.0) < 0.999 * middle.delta(1.0) < 0.99 * gaussian.delta(1.0)


def test_more_pieces_and_wider_ones_are_never_worse() -> None:
    for epsilon in (0.0, 0.2, 1.0):
        for first, second in (((0.1, 100), (0.1, 101)), ((0.1, 100), (0.11, 100)),
                              ((2.0, 128), (2.0, 129)), ((15.99, 3), (16.0, 3)),
                              ((0.5, 600), (0.5, 700)), ((0.003, 9), (0.004, 9))):  # fmt: skip
            one, other = (ta.SummedDiscreteGaussianNoise(*pair) for pair in (first, second))
            assert other.delta(epsilon) <= one.delta(epsilon) * (1 + 1e-12) + 1e-16


@pytest.mark.parametrize("pieces", [1, 33, 1000, 10**5, 10**7])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.05, 1e-8)])
def test_the_calibrated_variance_is_the_least(pieces: int, epsilon: float, delta: float) -> None:
    noise = ta.SummedDiscreteGaussianNoise(1.0, pieces)
    found = ta.calibrate(noise, "variance", epsilon, delta)
    assert ta.calibrate_noise(noise, epsilon, delta) == found
    assert noise.replace(variance=found).delta(epsilon) <= delta
    assert noise.replace(variance=found * (1 - 1e-9)).delta(epsilon) > delta


def test_no_noise_hides_nothing() -> None:
    for variance, pieces in ((1e-100, 10**7), (0.002, 10**7)):
        assert ta.SummedDiscreteGaussianNoise(variance, pieces).delta(30.0) == 1


@pytest.mark.parametrize("pieces", [1000])
def test_the_largest_variance_is_taken(pieces: int) -> None:
    noise = ta.SummedDiscreteGaussianNoise(1.0, pieces)
    assert noise.replace(variance=noise._largest_noise).delta(1e-3) < 1e-300


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ((0.0, 5), InvalidValueError, "variance must be from 1e-100"),
        ((1e12, 2), InvalidValueError, "variance must be from 1e-100 to 5e"),
        ((math.nan, 5), InvalidValueError, "variance must be"),
        (("1", 5), InvalidTypeError, "variance must be a real number"),
        ((1.0, 0), InvalidValueError, "pieces must be an integer from 1 to 10000000, got 0"),
        ((1.0, 10**8), InvalidValueError, "pieces must be an integer from 1"),
        ((1.0, 2.0), InvalidTypeError, "pieces must be an integer from 1"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(
    parameters: tuple[float, int], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        ta.SummedDiscreteGaussianNoise(*parameters)
