"""The square wave mechanism: its exact law, and the road of a number."""

from __future__ import annotations

import decimal
import itertools
import math
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import turnout as tn
from turnout.distribution import BinnedBounds, DistributionTally
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
)

GRID = list(itertools.product((1e-6, 0.1, 0.7, 1.0, 3.0, 9.0, 42.0), (2, 5, 64, 300)))


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x, from 120 correctly rounded digits."""
    with decimal.localcontext() as context:
        context.prec = 120
        return Fraction(decimal.Decimal(x).exp()) * (1 - Fraction(1, 10**118))


@pytest.mark.parametrize(("epsilon", "bins"), GRID)
def test_every_report_is_at_most_e_to_the_epsilon_times_as_likely(
    epsilon: float, bins: int
) -> None:
    wave = tn.SquareWave(epsilon, (0, 1), bins)
    law = wave._law
    assert wave.cells == bins + wave.window - 1
    some = sorted({0, 1, bins // 3, bins - 1})
    columns = [[law.probability(cell, place) for cell in range(wave.cells)] for place in some]
    assert all(sum(column) == 1 for column in columns)
    ratio = max(max(row) / min(row) for row in zip(*columns, strict=True))
    assert ratio == wave.realized_ratio <= exponential_below(epsilon)
    # And next to it: one word more for the own cells would be too much.
    many, few = wave._core.words
    assert Fraction(many + 1, few) > exponential_below(epsilon)
    assert 0 < wave.realized_epsilon <= epsilon
    assert wave.realized_ratio <= exponential_below(wave.realized_epsilon) * (
        1 + Fraction(1, 2**90)
    )
    np.testing.assert_allclose(
        law.matrix()[:, some], np.array(columns, np.float64).T, rtol=1e-14, atol=0
    )


def test_products_with_the_law_are_those_with_its_matrix() -> None:
    generator = np.random.default_rng(3)
    for epsilon, bins in ((0.3, 2), (0.3, 50), (1.0, 64), (3.0, 33), (9.0, 40)):
        law = tn.SquareWave(epsilon, (0, 1), bins)._law
        matrix, shares = law.matrix(), generator.dirichlet(np.ones(bins))
        weights = generator.uniform(-1, 3, law.cells)
        np.testing.assert_allclose(law.cell_shares(shares), matrix @ shares, rtol=1e-11)
        np.testing.assert_allclose(law.bin_sums(weights), matrix.T @ weights, atol=1e-13)
        band = 1.0 * (matrix > law.levels[0] + law.levels[1] / 2)
        np.testing.assert_allclose(law.window_sums(weights), band.T @ weights, atol=1e-12)
        pairs = band.T @ (weights[:, None] * band)
        np.testing.assert_allclose(law.overlaps(weights), pairs, atol=1e-12)
        dense = matrix.T @ (weights[:, None] * matrix)
        np.testing.assert_allclose(law.information(weights), dense, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("epsilon", "bins"), [(0.5, 7), (1.0, 64), (4.0, 100), (10.0, 20)])
def test_reports_have_their_law(epsilon: float, bins: int, statistical: ModuleType) -> None:
    wave = tn.SquareWave(epsilon, (-3, 5), bins)
    for place in (0, bins // 2, bins - 1):
        value = wave.domain._middles[place]
        for participation in (tn.Everyone(), tn.Bernoulli(0.5)):
            cells = wave.randomize(
                np.full(300_000, value), participation=participation, seed=place + bins
            ).codes
            observed = np.bincount(cells, minlength=wave.cells)
            expected = [float(wave._law.probability(cell, place)) for cell in range(wave.cells)]
            statistical.check_law(observed, expected)


def test_fine_grids_have_the_published_law() -> None:
    # Li et al.: the density is e^eps / (2 b e^eps + 1) within b, and 1 / (2 b e^eps + 1) elsewhere
    # on [-b, 1 + b]; compared as the law of a report in steps of the width of a bin.
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        power = math.exp(epsilon)
        half = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
        wave = tn.SquareWave(epsilon, (0, 1), 1024)
        width = 1 / 1024
        assert abs(wave.window * width - 2 * half) <= 0.5 * width
        assert abs(wave.cells * width - (1 + 2 * half)) <= 1.5 * width
        # The window is rounded by half a cell at most.
        close = 0.6 / wave.window + 1e-3
        near, far = (float(wave._law.probability(cell, 0)) for cell in (0, wave.cells - 1))
        assert near / width == pytest.approx(power / (2 * half * power + 1), rel=close)
        assert far / width == pytest.approx(1 / (2 * half * power + 1), rel=close)


def test_a_number_is_in_the_bin_that_begins_with_it() -> None:
    wave = tn.SquareWave(1.0, (0, 100), 100)
    whole = np.arange(101.0)
    assert wave._core.bins(whole).tolist() == [*range(100), 99]
    generator = np.random.default_rng(2)
    for low, high, bins in ((0.0, 24.0, 48), (-7.5, 3.25, 43), (1e-3, 2e-3, 7)):
        values = generator.uniform(low, high, 10_000)
        found = tn.SquareWave(1.0, (low, high), bins)._core.bins(values)
        edges = BinnedBounds(low, high, bins=bins).edges
        assert (np.histogram(values, edges)[0] == np.bincount(found, minlength=bins)).all()


def test_numbers_outside_of_the_bounds_are_refused_whoever_takes_part() -> None:
    wave = tn.SquareWave(1.0, (0, 10), 5)
    for bad in (-0.1, 10.1, math.nan, math.inf):
        for call in (wave.randomize, wave.collect):
            with pytest.raises(InvalidValueError, match=r"values\[1\]"):
                call([1.0, bad, 3.0], participation=1e-6, seed=1)


def test_what_cannot_be_is_refused() -> None:
    for bins in (1, 1025, 0, -3):
        with pytest.raises(InvalidValueError, match="bins must be an integer from 2 to 1024"):
            tn.SquareWave(1.0, (0, 1), bins)
    for epsilon in (0.0, -1.0, math.nan, 43.0, 1e-15):
        with pytest.raises(InvalidValueError, match="epsilon"):
            tn.SquareWave(epsilon)
    with pytest.raises(InvalidValueError, match="lower before the upper"):
        tn.SquareWave(1.0, (1, 0))
    with pytest.raises(InvalidValueError, match="dimensions must be 1"):
        BinnedBounds(0, 1, 2)
    for wrong in ({"bounds": [0, 1]}, {"bounds": [1, 0], "bins": 3}, {"bounds": [0, 1], "bins": 1}):
        with pytest.raises(CorruptDataError, match="not the description of bounds with bins"):
            BinnedBounds.from_dict(wrong)
    wave = tn.SquareWave(1.0, (0, 1), 8)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[1\] must be a cell from 0 to"):
        tn.Reports(wave, tn.Everyone(), np.array([0, wave.cells], np.uint16), 2)
    plan = tn.Plan(wave, tn.Everyone())
    with pytest.raises(InvalidValueError, match="cells must add up to the 5 reports"):
        DistributionTally(plan, np.zeros(wave.cells), 5, 5)
    with pytest.raises(InvalidValueError, match="one of 'ems', 'ml', got 'hajek'"):
        wave.collect([0.5]).estimate("hajek")
    with pytest.raises(EstimatorError, match="no reports were received"):
        DistributionTally.empty(plan).estimate()


def test_what_is_about_categories_or_means_says_so() -> None:
    wave = tn.SquareWave(1.0, (0, 1), 8)
    reports = wave.randomize(np.linspace(0, 1, 100), seed=1)
    tally = wave.tally(reports)
    with pytest.raises(EstimatorError, match="use the estimate of their tally"):
        tn.maximum_likelihood(reports)
    with pytest.raises(EstimatorError, match="are about numbers"):
        tn.ordered(reports)
    with pytest.raises(InvalidTypeError, match="a Tally or a FrequencyEstimate"):
        tn.ordered(tally)
    with pytest.raises(InvalidTypeError, match="a FrequencyEstimate or a MeanEstimate"):
        tn.weighting.combine([tally.estimate()] * 2)
    with pytest.raises(InvalidTypeError, match="must be a frequency oracle"):
        tn.accounting.Shuffled(wave, 1000)
    with pytest.raises(EstimatorError, match="use the estimate of their tally"):
        tn.maximum_likelihood(tn.mean.Duchi(1.0).randomize([0.5] * 10, seed=1))


def test_a_collection_is_the_tally_of_its_reports_and_adds_up() -> None:
    wave = tn.SquareWave(0.8, (0, 1), 50)
    values = np.linspace(0, 1, 70_001)
    for who in (tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(np.linspace(0.1, 1, 70_001))):
        reports = wave.randomize(values, participation=who, seed=4)
        tally = wave.collect(values, participation=who, seed=4)
        assert tally == wave.tally(reports)
        assert (tally.cells == np.bincount(reports.codes, minlength=wave.cells)).all()
        both = tally + wave.tally(reports)
        assert (both.cells == 2 * tally.cells).all()
        assert DistributionTally.from_bytes(both.to_bytes()) == both
        if tally.weights is not None:
            inverse = np.bincount(reports.codes, 1 / reports.probabilities, minlength=wave.cells)
            np.testing.assert_allclose(tally.weights.inverse, inverse, rtol=1e-8)


def test_a_simulation_from_counts_has_the_mean_and_the_covariances_of_a_collection() -> None:
    wave = tn.SquareWave(1.0, (0, 1), 6)
    counts, rate, runs = np.array([400, 0, 50, 3000, 0, 700]), 0.4, 1200
    drawn = np.array(
        [wave.simulate(counts, participation=rate, seed=seed).cells for seed in range(runs)], float
    )
    # A person sends one of the cells or nothing: a multinomial law for each.
    shares = rate * wave._law.matrix()
    expected = shares @ counts
    covariance = np.diag(expected) - (shares * counts) @ shares.T
    spread = np.linalg.cholesky(covariance)
    scores = np.linalg.solve(spread, (drawn - expected).T)
    assert np.abs(scores.mean(axis=1)).max() < 5.5 / runs**0.5
    # Each second moment has a standard deviation of sqrt(2 / runs) at most.
    second = scores @ scores.T / runs
    assert np.abs(second - np.eye(wave.cells)).max() < 6 * (2 / runs) ** 0.5


def test_a_simulation_of_a_trillion_people_is_estimated_and_needs_one_rate() -> None:
    wave = tn.SquareWave(2.0, (0, 1), 16)
    shares = np.arange(1.0, 17.0) / 136
    tally = wave.simulate(np.arange(1, 17) * 10**10, participation=0.5, seed=1)
    assert tally.nodes == 1_360_000_000_000
    assert tally.estimate("ml").frequencies == pytest.approx(shares, abs=1e-4)
    with pytest.raises(InvalidValueError, match="use collect"):
        wave.simulate([1] * 16, participation=tn.Personalized(np.full(16, 0.5)))
    with pytest.raises(InvalidValueError, match="true_counts"):
        wave.simulate([1] * 15)
    with pytest.raises(
        InvalidValueError, match=r"cannot be simulated .* number itself; use collect"
    ):
        tn.mean.Duchi(1.0).simulate([1, 2])
