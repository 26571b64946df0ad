"""Guarantees, unbiasedness and variances of the mechanisms, by enumeration in exact rationals."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import turnout as tn

EPSILONS = (0.01, 0.1, 0.5, 1.0, 1.29, 2.0, 2.5, 4.0, 7.3, 10.0, 14.0, 21.0, 42.0)


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x: partial sums of the series, each term exact."""
    exact, total, term = Fraction(x), Fraction(1), Fraction(1)
    for index in range(1, 160):
        term = term * exact / index
        total += Fraction(math.floor(term * 2**200), 2**200)
    return total


def corners(d: int) -> Iterator[tuple[int, ...]]:
    return itertools.product((-1, 1), repeat=d)


def agreement(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def duchi_law(mechanism: tn.mean.Duchi, corner: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The law of the report given the corner that the values were rounded to."""
    ratio = mechanism.realized_ratio
    weights = {t: ratio if agreement(t, corner) > 0 else Fraction(1) for t in corners(len(corner))}
    total = sum(weights.values())
    return {t: weight / total for t, weight in weights.items()}


def mixture(mechanism: tn.mean.Duchi, values: tuple[Fraction, ...]) -> dict[object, Fraction]:
    law: dict[object, Fraction] = {}
    for corner in corners(len(values)):
        chance = math.prod(
            ((1 + v * value) / 2 for v, value in zip(corner, values, strict=True)),
            start=Fraction(1),
        )
        for report, probability in duchi_law(mechanism, corner).items():
            law[report] = law.get(report, Fraction(0)) + chance * probability
    return law


@pytest.mark.parametrize("d", range(1, 7))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 8.0])
def test_duchi_is_private_and_unbiased_by_enumeration(d: int, epsilon: float) -> None:
    mechanism = tn.mean.Duchi(epsilon, dimensions=d)
    bound = exponential_below(epsilon)
    points = [
        tuple(Fraction(place % 5 - 2, 2) for place in range(start, start + d)) for start in range(5)
    ]
    points += [(Fraction(1),) * d, (Fraction(-1),) * d]
    laws = [mixture(mechanism, point) for point in points]
    for report in laws[0]:
        probabilities = [law[report] for law in laws]
        assert max(probabilities) <= bound * min(probabilities)
    assert mechanism.realized_ratio <= bound
    scale = mechanism._scale
    for point, law in zip(points, laws, strict=True):
        assert sum(law.values()) == 1
        for j in range(d):
            mean = sum((p * t[j] * scale for t, p in law.items()), start=Fraction(0))  # type: ignore[index]
            assert mean == point[j]
        values = [float(value) for value in point]
        variance = mechanism.variance(values if d == 1 else [values])
        expected = [float(scale**2 - value**2) for value in point]
        np.testing.assert_allclose(np.ravel(variance), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 4, 6])
def test_the_printed_rule_for_ties_is_unbiased_and_breaks_the_guarantee(d: int) -> None:
    # Algorithm 3 of Wang et al.: T+ and T- both hold the ties.
    ratio = Fraction(3)
    corner = (1,) * d
    sides = [[t for t in corners(d) if sign * sum(t) >= 0] for sign in (1, -1)]
    law = dict.fromkeys(corners(d), Fraction(0))
    for side, weight in zip(sides, (ratio / (ratio + 1), 1 / (ratio + 1)), strict=True):
        for t in side:
            law[t] += weight / len(side)
    assert max(law.values()) / min(law.values()) == ratio + 1
    printed = Fraction(2 ** (d - 1) + math.comb(d, d // 2) // 2, math.comb(d - 1, d // 2))
    printed *= (ratio + 1) / (ratio - 1)
    assert sum(p * t[0] for t, p in law.items()) * printed == corner[0]


def test_the_factor_of_duchi_in_odd_dimensions_is_the_published_one() -> None:
    for d in (1, 3, 5, 101):
        mechanism = tn.mean.Duchi(1.0, dimensions=d)
        ratio = mechanism.realized_ratio
        published = (ratio + 1) / (ratio - 1) * Fraction(2 ** (d - 1), math.comb(d - 1, d // 2))
        assert mechanism._scale == published


def piecewise_law(mechanism: tn.mean.Piecewise, start: int) -> tuple[Fraction, Fraction]:
    """The first two moments of the centred cell, summed over runs of cells with one weight."""
    anywhere = Fraction(mechanism._core.law[1], 2**64)
    cells, window = mechanism.cells, mechanism.window

    def moments(first: int, count: int) -> tuple[Fraction, Fraction]:
        # Of 2 cell - (cells - 1), uniform on the run, by the sums of powers up to each end.
        def powers(end: int) -> tuple[int, int]:
            return end * (end - 1) // 2, (end - 1) * end * (2 * end - 1) // 6

        (one, two), (one_end, two_end) = powers(first), powers(first + count)
        sums = one_end - one, two_end - two
        last = cells - 1
        mean = Fraction(2 * sums[0] - last * count, count)
        square = Fraction(4 * sums[1] - 4 * last * sums[0] + last**2 * count, count)
        return mean, square

    near, far = moments(start, window), moments(0, cells)
    return tuple((1 - anywhere) * a + anywhere * b for a, b in zip(near, far, strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_piecewise_is_private_unbiased_and_has_its_variance(epsilon: float) -> None:
    mechanism = tn.mean.Piecewise(epsilon)
    anywhere = mechanism._core.law[1]
    cells, window = mechanism.cells, mechanism.window
    outside = Fraction(anywhere, 2**64 * cells)
    inside = outside + Fraction(2**64 - anywhere, 2**64 * window)
    assert inside * window + outside * (cells - window) == 1
    assert inside / outside == mechanism.realized_ratio <= exponential_below(epsilon)
    assert mechanism.realized_ratio >= exponential_below(epsilon * (1 - 1e-9)) or epsilon > 30
    scale, root = mechanism._scale, math.exp(epsilon / 2)
    for value in (-1.0, -0.625, 0.0, 0.3, 0.99, 1.0):
        place = (Fraction(value) + 1) / 2 * (cells - window)
        start, rest = math.floor(place), place - math.floor(place)
        mean = second = Fraction(0)
        for shift, chance in ((0, 1 - rest), (1, rest)):
            if chance:
                first, square = piecewise_law(mechanism, start + shift)
                mean, second = mean + chance * first, second + chance * square
        assert mean * scale == Fraction(value)
        variance = second * scale**2 - Fraction(value) ** 2
        # A float's place is known to 2^-53 of the grid, so the rounding is known to its own bound.
        known = mechanism._second_moment.rounding * 1e-3
        ours = float(mechanism.variance([value])[0])
        assert ours == pytest.approx(float(variance), rel=1e-9, abs=known)
        assert float(variance) <= mechanism.worst_variance * (1 + 1e-12)
        published = value**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert float(variance) == pytest.approx(published, rel=1e-3)
    assert mechanism._core.scale == pytest.approx(float(scale), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 16, 40])
def test_several_coordinates_share_epsilon(epsilon: float, dimensions: int) -> None:
    mechanism = tn.mean.Piecewise(epsilon, dimensions=dimensions)
    assert mechanism._sampled == max(1, min(dimensions, math.floor(epsilon / 2.5)))
    assert mechanism.realized_ratio <= exponential_below(epsilon)
    assert mechanism.realized_epsilon <= epsilon
    assert mechanism.realized_ratio <= exponential_below(mechanism.realized_epsilon) * (
        1 + Fraction(1, 2**190)
    )
    duchi = tn.mean.Duchi(epsilon, dimensions=dimensions)
    assert duchi.realized_ratio <= exponential_below(epsilon)
    assert duchi.realized_epsilon <= epsilon
    assert duchi._core.scale == pytest.approx(float(duchi._scale), rel=1e-11)


def test_which_mechanism_is_better_where() -> None:
    # Wang et al., section III: the crossing of the worst variances in one dimension is near 1.29.
    for epsilon, better in (
        (0.5, "duchi"),
        (1.25, "duchi"),
        (1.33, "piecewise"),
        (5.0, "piecewise"),
    ):
        worst = {
            m.name: m.worst_variance for m in (tn.mean.Duchi(epsilon), tn.mean.Piecewise(epsilon))
        }
        assert min(worst, key=worst.__getitem__) == better


@pytest.mark.parametrize(
    "mechanism",
    [
        tn.mean.Duchi(1.0, (-2.0, 3.0)),
        tn.mean.Duchi(0.7, dimensions=2),
        tn.mean.Duchi(2.0, dimensions=3),
        tn.mean.Piecewise(1.0, (-2.0, 3.0)),
        tn.mean.Piecewise(6.0, dimensions=5),
        tn.mean.Piecewise(20.0, (10.0, 12.0)),
    ],
    ids=repr,
)
def test_reports_have_the_mean_and_the_variance(
    mechanism: tn.mean.MeanMechanism, statistical: ModuleType
) -> None:
    low, high = mechanism.bounds
    shares = np.array([0.1, 0.9, 0.25, 0.5, 1.0])[: mechanism.dimensions]
    held = low + (high - low) * shares
    nodes = 300_000
    values = np.tile(held, (nodes, 1))
    reports = mechanism.randomize(values[:, 0] if mechanism.dimensions == 1 else values, seed=11)
    rows = reports.codes.reshape(nodes, -1)
    said = float(mechanism._scale) * (2.0 * rows[:, -mechanism._sampled :] - (mechanism.cells - 1))
    estimates = np.zeros((nodes, mechanism.dimensions))
    if mechanism._sampled == mechanism.dimensions:
        estimates[:] = said
    else:
        np.put_along_axis(estimates, rows[:, : mechanism._sampled].astype(np.int64), said, axis=1)
        estimates *= mechanism.dimensions / mechanism._sampled
    estimates = (low + high) / 2 + (high - low) / 2 * estimates
    statistical.check_mean(estimates, held)
    expected = mechanism.variance(held if mechanism.dimensions == 1 else held[None, :])
    statistical.check_variance(estimates, expected)


def test_mechanisms_are_values() -> None:
    one = tn.mean.Piecewise(2.0, (0.0, 1.0), 3)
    assert one == tn.mean.Piecewise(2.0, (0, 1), dimensions=3)
    assert one != tn.mean.Piecewise(2.0, (0.0, 1.0))
    assert one != tn.mean.Duchi(2.0, (0.0, 1.0), 3)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert repr(one) == "Piecewise(epsilon=2.0, bounds=(0.0, 1.0), dimensions=3)"
    assert tn.mean.Duchi(1.0, dimensions=7).report_bits == 7
    assert tn.mean.Piecewise(1.0).report_bits == 16
    assert one.report_bits == 16 + 2
