"""Laws of the total noise: variances, quantiles and tails against plain convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from turnout.distributed.noise import GaussianLaw, LaplaceLaw, NoiseLaw, SkellamLaw
from turnout.errors import InvalidTypeError, InvalidValueError

DIGITS = 50
LEVELS = (0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9)


def convolve(one: Sequence[mpf], other: Sequence[mpf]) -> list[mpf]:
    law = [mpf(0)] * (len(one) + len(other) - 1)
    for x, p in enumerate(one):
        for y, q in enumerate(other):
            law[x + y] += p * q
    return law


def trimmed(law: list[mpf]) -> list[mpf]:
    keep = next(index for index, mass in enumerate(law) if mass > mpf(10) ** -42)
    return law[keep : len(law) - keep]


def laplace(scale: float, parts: int, contributors: int) -> list[mpf]:
    """Subtract two negative binomial variables of the whole shape, by their masses."""
    with mp.workdps(DIGITS):
        ratio, shape = mp.exp(-1 / mpf(scale)), mpf(contributors) / parts
        masses = [(1 - ratio) ** shape]
        while masses[-1] > mpf(10) ** -42 or len(masses) < 3:
            k = len(masses)
            masses.append(masses[-1] * (shape + k - 1) / k * ratio)
        return convolve(masses, masses[::-1])


def gaussian(variance: float, contributors: int) -> list[mpf]:
    with mp.workdps(DIGITS):
        radius = math.ceil(math.sqrt(200 * variance)) + 1
        piece = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(variance))) for x in range(-radius, radius + 1)]
        total = sum(piece)
        piece = [mass / total for mass in piece]
        law = [mpf(1)]
        for bit in bin(contributors)[2:]:
            law = trimmed(convolve(law, law))
            if bit == "1":
                law = trimmed(convolve(law, piece))
        return law


def skellam(mean: float, contributors: int) -> list[mpf]:
    with mp.workdps(DIGITS):
        masses = [mp.exp(-mpf(mean) * contributors)]
        while masses[-1] > mpf(10) ** -42 or len(masses) < 2 * mean * contributors + 3:
            masses.append(masses[-1] * mpf(mean) * contributors / len(masses))
        return convolve(masses, masses[::-1])


CASES: list[tuple[NoiseLaw, list[mpf]]] = [
    (LaplaceLaw(2.0, 1, 1), laplace(2.0, 1, 1)),
    (LaplaceLaw(2.0, 100, 100), laplace(2.0, 1, 1)),
    (LaplaceLaw(2.0, 10, 4), laplace(2.0, 10, 4)),
    (LaplaceLaw(0.3, 7, 15), laplace(0.3, 7, 15)),
    (LaplaceLaw(4.0, 3, 40), laplace(4.0, 3, 40)),
    (GaussianLaw(0.116, 1, 1000), gaussian(0.116, 1000)),
    (GaussianLaw(0.03, 1, 5), gaussian(0.03, 5)),
    (GaussianLaw(2.0, 1, 7), gaussian(2.0, 7)),
    (GaussianLaw(30.0, 1, 2), gaussian(30.0, 2)),
    (SkellamLaw(1e-3, 1, 9), skellam(1e-3, 9)),
    (SkellamLaw(0.7, 1, 20), skellam(0.7, 20)),
    (SkellamLaw(40.0, 1, 1), skellam(40.0, 1)),
]


def outside(law: Sequence[mpf], width: int) -> mpf:
    """Return the probability beyond a width, from the smallest masses up."""
    middle = len(law) // 2
    return sum(sorted(p for x, p in enumerate(law) if abs(x - middle) > width), mpf(0))


@pytest.mark.parametrize(("law", "masses"), CASES, ids=lambda value: repr(value)[:40])
def test_the_variance_is_that_of_the_masses(law: NoiseLaw, masses: list[mpf]) -> None:
    middle = len(masses) // 2
    with mp.workdps(DIGITS):
        assert abs(sum(masses) - 1) < mpf(10) ** -35
        exact = sum((x - middle) ** 2 * mass for x, mass in enumerate(masses))
    assert law.variance == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize(("law", "masses"), CASES, ids=lambda value: repr(value)[:40])
def test_half_widths_are_the_smallest(law: NoiseLaw, masses: list[mpf]) -> None:
    with mp.workdps(DIGITS):
        for level in LEVELS:
            found = law.half_width(level)
            assert found == int(found)
            assert outside(masses, int(found)) <= 1 - mpf(level)
            assert found == 0 or outside(masses, int(found) - 1) > 1 - mpf(level) - mpf(10) ** -11
        for level in (1 - 1e-13, math.nextafter(1.0, 0.0)):
            assert outside(masses, int(law.half_width(level))) <= 1 - mpf(level)


@pytest.mark.parametrize(("law", "masses"), CASES, ids=lambda value: repr(value)[:40])
def test_tails_are_bounded_and_not_by_much_too_far(law: NoiseLaw, masses: list[mpf]) -> None:
    for probability in (1.0, 0.3, 1e-3, 1e-10, 2.0**-64, 2.0**-100):
        found = law.tail_bound(probability)
        assert isinstance(found, int)
        with mp.workdps(DIGITS):
            assert outside(masses, found) <= mpf(probability)
            # Chernoff's bound loses a factor that is small beside the tail.
            nearest = next(
                width for width in itertools.count() if outside(masses, width) <= probability
            )
        assert found <= 1.5 * nearest + 1.2 * math.sqrt(law.variance) + 3


def test_wide_noise_has_the_quantiles_of_a_gaussian() -> None:
    for law in (
        GaussianLaw(1e8, 1, 1), GaussianLaw(0.2, 1, 10**9), SkellamLaw(5e3, 1, 10**4),
        LaplaceLaw(100.0, 1, 10**4),
    ):  # fmt: skip
        expected = 1.959964 * math.sqrt(law.variance)
        assert law.half_width(0.95) == pytest.approx(expected, rel=2e-4)
    # Beyond the longest transform the width is Chernoff's: safe, and larger.
    law = SkellamLaw(1e10, 1, 10**3)
    assert 1.96 < law.half_width(0.95) / math.sqrt(law.variance) < 2.8


def test_a_whole_discrete_laplace_variable_has_a_tail_in_closed_form() -> None:
    for scale in (0.5, 3.0, 500.0):
        law, ratio = LaplaceLaw(scale, 1, 1), math.exp(-1 / scale)
        # P[|X| > t] = 2 r^(t+1) / (1 + r).
        for chance in (0.2, 0.05, 1e-6):
            width = math.ceil(scale * math.log(2 / (chance * (1 + ratio))) - 1)
            assert law.half_width(1 - chance) == max(width, 0)


@settings(max_examples=60, deadline=None)
@given(
    law=st.one_of(
        st.builds(LaplaceLaw, st.floats(1e-3, 1e4), st.integers(1, 10**6), st.integers(0, 10**6)),
        st.builds(GaussianLaw, st.floats(1e-4, 1e7), st.just(1), st.integers(0, 10**6)),
        st.builds(SkellamLaw, st.floats(1e-100, 1e7), st.just(1), st.integers(0, 10**6)),
    ),
    probability=st.floats(1e-300, 1.0),
)
def test_tails_of_all_laws_are_ordered(law: NoiseLaw, probability: float) -> None:
    here, further = law.tail_bound(probability), law.tail_bound(probability / 16)
    assert 0 <= here <= further
    # Chebyshev's bound is far behind in the tails.
    if probability < 1e-9:
        assert here <= math.sqrt(law.variance / probability) + 1


def test_without_contributors_there_is_no_noise() -> None:
    for law in (LaplaceLaw(2.0, 5, 0), GaussianLaw(2.0, 1, 0), SkellamLaw(2.0, 1, 0),
                LaplaceLaw(1e-100, 1, 1), GaussianLaw(1e-100, 1, 9)):  # fmt: skip
        assert law.variance == 0
        assert law.half_width(0.99) == 0
        assert law.tail_bound(2.0**-64) == 0


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "message"),
    [
        (LaplaceLaw, (0.0, 1, 1), InvalidValueError, "scale must be from 1e-100 to 1e"),
        (LaplaceLaw, (1.0, 0, 1), InvalidValueError, "required must be an integer from 1"),
        (LaplaceLaw, (1.0, 1, -1), InvalidValueError, "contributors must be an integer from 0"),
        (GaussianLaw, (math.nan, 1, 1), InvalidValueError, "variance must be from 1e-100"),
        (GaussianLaw, (1.0, 1, 1.0), InvalidTypeError, "contributors must be an integer"),
        (SkellamLaw, (1e11, 1, 1), InvalidValueError, "mean must be from 1e-100"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(
    kind: type[NoiseLaw], parameters: tuple[float, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(*parameters)


@pytest.mark.parametrize(
    "law", [LaplaceLaw(1.0, 1, 1), GaussianLaw(1.0, 1, 1), SkellamLaw(1.0, 1, 1)]
)
def test_bad_levels_and_probabilities_are_named(law: NoiseLaw) -> None:
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidValueError, match="level must be a level between 0 and 1"):
            law.half_width(level)
    for probability in (0.0, 1.5, math.nan):
        with pytest.raises(InvalidValueError, match="probability must be a probability"):
            law.tail_bound(probability)
