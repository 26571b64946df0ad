"""Exact integer noise of the core: laws with fifty digits, parameters as exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf
from scipy import stats

from turnout import _core
from turnout.errors import InvalidValueError

Law = npt.NDArray[np.float64]

DRAWS = 1_000_000


def laplace_weight(scale: float) -> Callable[[int], mpf]:
    return lambda x: mp.exp(-abs(x) / mpf(scale))


def gaussian_weight(variance: float) -> Callable[[int], mpf]:
    return lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(variance)))


def skellam_weight(mean: float) -> Callable[[int], mpf]:
    return lambda x: mp.besseli(abs(x), 2 * mpf(mean))


def law(weight: Callable[[int], mpf], reach: int) -> Law:
    """Masses from ``-reach`` to ``reach``, the tails at the ends; ``reach`` is far out."""
    with mp.workdps(50):
        weights = [weight(x) for x in range(10 * reach + 1)]
        total = 2 * mp.fsum(weights) - weights[0]
        inner = [float(weight / total) for weight in weights[:reach]]
        end = float(mp.fsum(weights[reach:]) / total)
    return np.array([end, *inner[:0:-1], *inner, end])


def histogram(numbers: npt.NDArray[np.int64], reach: int) -> npt.NDArray[np.int64]:
    return np.bincount(np.clip(numbers, -reach, reach) + reach, minlength=2 * reach + 1)


@pytest.mark.parametrize(
    ("draw", "parameter", "weight", "reach"),
    [
        (_core.discrete_laplace, 0.02, laplace_weight, 2),
        (_core.discrete_laplace, 0.7, laplace_weight, 15),
        (_core.discrete_laplace, 2.0, laplace_weight, 40),
        (_core.discrete_laplace, 31.3, laplace_weight, 400),
        (_core.discrete_gaussian, 0.001, gaussian_weight, 2),
        (_core.discrete_gaussian, 0.3, gaussian_weight, 6),
        (_core.discrete_gaussian, 27.8, gaussian_weight, 35),
        (_core.discrete_gaussian, 1234.5, gaussian_weight, 200),
        (_core.skellam, 0.02, skellam_weight, 4),
        (_core.skellam, 1.7, skellam_weight, 15),
        (_core.skellam, 13.15, skellam_weight, 35),
    ],
)
def test_noise_has_its_law(
    draw: Any, parameter: float, weight: Any, reach: int, statistical: ModuleType
) -> None:
    numbers = draw(parameter, DRAWS, seed=11)
    assert numbers.dtype == np.int64
    statistical.check_law(histogram(numbers, reach), law(weight(parameter), reach))


def piece_law(scale: float, parts: int, reach: int) -> Law:
    """The difference of two negative binomial numbers of shape 1/parts, by its definition."""
    with mp.workdps(30):
        ratio, shape = mp.exp(-1 / mpf(scale)), mpf(1) / parts
        half = [
            float(mp.rf(shape, k) / mp.factorial(k) * (1 - ratio) ** shape * ratio**k)
            for k in range(8 * reach)
        ]
    masses = np.convolve(half, half[::-1])
    centre = len(half) - 1
    kept = masses[centre - reach : centre + reach + 1].copy()
    kept[0] += masses[: centre - reach].sum()
    kept[-1] += masses[centre + reach + 1 :].sum()
    return kept


@pytest.mark.parametrize(
    ("scale", "parts", "reach"),
    [(0.3, 2, 6), (2.0, 1, 40), (2.0, 3, 40), (2.0, 500, 20), (17.0, 6, 150)],
)
def test_pieces_are_differences_of_negative_binomials(
    scale: float, parts: int, reach: int, statistical: ModuleType
) -> None:
    numbers = _core.discrete_laplace_piece(scale, parts, DRAWS, seed=12)
    statistical.check_law(histogram(numbers, reach), piece_law(scale, parts, reach))


@pytest.mark.parametrize(("scale", "parts", "reach"), [(2.0, 4, 30), (0.6, 10, 12)])
def test_pieces_add_up_to_the_whole(
    scale: float, parts: int, reach: int, statistical: ModuleType
) -> None:
    whole = law(laplace_weight(scale), reach)
    # The laws, by convolution on a range that holds all but 1e-12.
    wide = piece_law(scale, parts, 4 * reach)
    total = np.ones(1)
    for _ in range(parts):
        total = np.convolve(total, wide)
    centre = total.size // 2
    np.testing.assert_allclose(
        total[centre - reach + 1 : centre + reach], whole[1:-1], rtol=0, atol=1e-12
    )
    # The draws.
    numbers = [
        _core.discrete_laplace_piece(scale, parts, DRAWS, seed=100 + i) for i in range(parts)
    ]
    statistical.check_law(histogram(np.sum(numbers, axis=0), reach), whole)


def test_skellam_pieces_of_users_are_not_less_than_the_whole(statistical: ModuleType) -> None:
    mean, users = 0.9, 7
    share = _core.divide_up(mean, users)
    assert Fraction(share) * users >= Fraction(mean)
    numbers = sum(_core.skellam(share, DRAWS, seed=i) for i in range(users))
    statistical.check_law(
        histogram(np.asarray(numbers), 12), law(skellam_weight(share * users), 12)
    )


@pytest.mark.parametrize(
    ("trials", "rate"), [(1, 0.25), (10, 0.908), (63, 0.4), (100, 0.167), (257, 0.5), (9, 1e-9)]
)
def test_dummies_are_binomial(trials: int, rate: float, statistical: ModuleType) -> None:
    counts = _core.bernoulli_counts(trials, rate, DRAWS, seed=13)
    masses = stats.binom.pmf(np.arange(trials + 1), trials, rate)
    statistical.check_law(np.bincount(counts, minlength=trials + 1), masses)


def test_certain_dummies_are_all_counted() -> None:
    np.testing.assert_array_equal(_core.bernoulli_counts(70, 1.0, 3), [70, 70, 70])


@pytest.mark.parametrize("scale", [0.02, 0.1, 1 / 3, 0.5, 1.0, 2.0, 7.84, 1e3 + 0.1, 1e6])
def test_the_realised_rate_is_the_largest_multiple_that_protects_enough(scale: float) -> None:
    numerator, denominator = _core.discrete_laplace_realized(scale)
    assert denominator == 2**64
    asked = 1 / Fraction(scale)
    assert Fraction(numerator, denominator) <= asked < Fraction(numerator + 1, denominator)


@pytest.mark.parametrize("variance", [1e-3, 0.1, 1.0, 27.8, 46.9, 1e10])
def test_the_realised_variance_is_not_less_than_asked(variance: float) -> None:
    assert Fraction(_core.discrete_gaussian_realized(variance)) == Fraction(variance)


@pytest.mark.parametrize("parts", [1, 3, 10, 999, 2**53 + 1, 2**64 - 1])
@pytest.mark.parametrize("value", [26.3, 0.1, 1.0, 1e-300, 1e300, 5e-324])
def test_division_rounds_up_to_the_next_float(value: float, parts: int) -> None:
    share = _core.divide_up(value, parts)
    assert Fraction(share) * parts >= Fraction(value)
    below = math.nextafter(share, 0)
    assert below == 0 or Fraction(below) * parts < Fraction(value)


DRAWERS: list[Callable[..., npt.NDArray[np.int64]]] = [
    lambda length, **seed: _core.discrete_laplace(3.0, length, **seed),
    lambda length, **seed: _core.discrete_laplace_piece(3.0, 2, length, **seed),
    lambda length, **seed: _core.discrete_gaussian(3.0, length, **seed),
    lambda length, **seed: _core.skellam(3.0, length, **seed),
    lambda length, **seed: _core.bernoulli_counts(30, 0.3, length, **seed),
]


@pytest.mark.parametrize("draw", DRAWERS)
def test_a_seed_gives_the_same_noise_and_none_fresh_noise(
    draw: Callable[..., npt.NDArray[np.int64]],
) -> None:
    for length in (100, 10_000):
        first = draw(length, seed=5)
        np.testing.assert_array_equal(first, draw(length, seed=5))
        assert (first != draw(length, seed=6)).any()
        assert (draw(length) != draw(length)).any()
    assert draw(0).shape == (0,)


@pytest.mark.parametrize(
    ("draw", "argument", "values"),
    [
        (lambda v: _core.discrete_laplace(v, 1), "scale", [0.01, 1e7, -1.0]),
        (lambda v: _core.discrete_laplace_piece(v, 2, 1), "scale", [0.0, 2e6]),
        (lambda v: _core.discrete_laplace_piece(1.0, v, 1), "parts", [0]),
        (_core.discrete_laplace_realized, "scale", [0.0]),
        (lambda v: _core.discrete_gaussian(v, 1), "variance", [9e-4, 2e10]),
        (_core.discrete_gaussian_realized, "variance", [0.0]),
        (lambda v: _core.skellam(v, 1), "mean", [0.0, 1e-13, 1.1e6]),
        (lambda v: _core.bernoulli_counts(1, v, 1), "rate", [0.0, 1.1, -0.1]),
        (lambda v: _core.bernoulli_counts(v, 0.5, 1), "trials", [2**63]),
        (lambda v: _core.divide_up(v, 2), "value", [0.0, -1.0]),
        (lambda v: _core.divide_up(1.0, v), "parts", [0]),
        (lambda v: _core.discrete_laplace(1.0, v), "length", [2**62]),
    ],
)
def test_bad_parameters_are_named(
    draw: Callable[[Any], Any], argument: str, values: list[Any]
) -> None:
    others = [] if isinstance(values[0], int) else [math.nan, math.inf]
    for value in values + others:
        with pytest.raises(InvalidValueError, match=argument):
            draw(value)
