"""Summation with histogram encoding: the guarantee, the law of scores, tallies and estimates."""

from __future__ import annotations

import math
import pickle
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.summation_histogram import SummationHistogramEncoding


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 0.5, math.log(2), 1.0, 2.0, 3.3, 5.0, 20.0, 42.0])
def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely_under_another_answer(
    epsilon: float,
) -> None:
    oracle = SummationHistogramEncoding(epsilon, 5)
    # The exponent of the ratio is rate times what two histograms differ by in sum: two.
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) < 2 * oracle.rate <= Fraction(epsilon)
    assert 2 * oracle.rate <= Fraction(oracle.realized_epsilon) <= Fraction(epsilon)
    context = Context(prec=90)
    exponent = context.divide(Decimal(2 * oracle.rate.numerator), Decimal(oracle.rate.denominator))
    truth = Fraction(context.exp(exponent))
    assert truth < oracle.realized_ratio < truth * (1 + Fraction(1, 10**40))
    assert oracle.realized_ratio <= Fraction(context.exp(Decimal(epsilon)))
    assert oracle.variation_ratio.ratio == oracle.realized_ratio


def masses(rate: float, reach: int) -> npt.NDArray[np.float64]:
    """The law of the noise on ``-reach .. reach``, what is beyond at the ends."""
    ratio = math.exp(-rate)
    law: npt.NDArray[np.float64]
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1.0))
    law[[0, -1]] += ratio ** (reach + 1) / (1 + ratio)
    return law


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_scores_are_the_histogram_with_discrete_laplace_noise(
    epsilon: float, statistical: ModuleType
) -> None:
    oracle = SummationHistogramEncoding(epsilon, 4)
    reports = oracle.randomize(np.full(200_000, 2), seed=3)
    assert reports.codes.shape == (200_000, 4)
    assert reports.codes.dtype == np.int32
    noise = reports.codes - np.array([0, 0, 1, 0])
    reach = 30
    law = masses(epsilon / 2, reach)
    for column in noise.T:
        kept = np.clip(column, -reach, reach) + reach
        statistical.check_law(np.bincount(kept, minlength=2 * reach + 1), law)
    variance = float(oracle._score_moments.other_variance)
    statistical.check_covariance(noise, np.eye(4) * variance)
    # Against the sum over the law, far out.
    far = np.arange(-2000, 2001)
    assert math.isclose(variance, float((masses(epsilon / 2, 2000) * far**2).sum()), rel_tol=1e-9)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
@pytest.mark.parametrize("nodes", [0, 1, 300, 2**16 + 7])
def test_a_tally_adds_scores_and_collecting_is_the_same_in_one_pass(way: int, nodes: int) -> None:
    oracle = SummationHistogramEncoding(1.0, 5)
    rates = np.random.default_rng(5).uniform(0.01, 1.0, nodes)
    who = [tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)][way]
    values = np.random.default_rng(nodes).integers(0, 5, nodes)
    reports = oracle.randomize(values, participation=who, seed=7)
    tally = oracle.tally(reports)
    assert tally == oracle.collect(values, participation=who, seed=7)
    assert tally.support.dtype == np.int64
    assert tally.support.tolist() == reports.codes.sum(axis=0, dtype=np.int64).tolist()
    assert tn.Tally.from_bytes(tally.to_bytes()) == tally
    if reports.probabilities is not None:
        units = np.rint(2**32 / reports.probabilities).astype(np.int64)
        assert tally.weights is not None
        expected = (reports.codes.T.astype(np.int64) * units).sum(axis=1) / 2**32
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-12, atol=1e-6)


def test_estimates_are_unbiased_with_the_predicted_variance(statistical: ModuleType) -> None:
    oracle = SummationHistogramEncoding(1.0, 4)
    counts = np.array([300, 150, 50, 0])
    values = np.repeat(np.arange(4), counts)
    for who in (tn.Everyone(), tn.Bernoulli(0.4)):
        variance = tn.estimator_variance(oracle, who, method="g", true_counts=counts)
        for draw, population in ((oracle.simulate, counts), (oracle.collect, values)):
            tallies = (draw(population, participation=who, seed=seed) for seed in range(2000))
            estimates = [tally.estimate(method="g").counts for tally in tallies]
            statistical.check_mean(estimates, counts)
            statistical.check_variance(estimates, variance)


def test_personal_participation_is_estimated_without_bias(statistical: ModuleType) -> None:
    oracle = SummationHistogramEncoding(2.0, 4)
    values = np.repeat(np.arange(4), [200, 100, 50, 0])
    who = tn.Personalized(0.2 + 0.25 * values)
    variance = tn.estimator_variance(oracle, who, method="horvitz_thompson", values=values)
    draws = (oracle.collect(values, participation=who, seed=seed) for seed in range(3000))
    estimates = [tally.estimate(method="horvitz_thompson").counts for tally in draws]
    statistical.check_mean(estimates, np.bincount(values, minlength=4))
    statistical.check_variance(estimates, variance)


def test_a_simulation_of_many_nodes_takes_no_longer() -> None:
    oracle = SummationHistogramEncoding(1.0, 3)
    tally = oracle.simulate([4 * 10**11, 6 * 10**11, 0], seed=1)
    deviation = math.sqrt(10**12 * oracle._score_moments.other_variance)
    assert tally.received == 10**12
    assert (np.abs(tally.support - np.array([4e11, 6e11, 0])) < 6 * deviation).all()
    with pytest.raises(InvalidValueError, match="adds up to more"):
        oracle.simulate([2**62, 0, 0])


def test_an_oracle_describes_itself_and_files_hold_its_reports(tmp_path: Path) -> None:
    oracle = SummationHistogramEncoding(1.25, tn.Domain(["a", "b", "c"]))
    for copy in (pickle.loads(pickle.dumps(oracle)), FrequencyOracle.from_dict(oracle.to_dict())):
        assert copy == oracle
    assert oracle.report_bits == 96
    reports = oracle.randomize(["a", "c"] * 50, participation=tn.Bernoulli(0.5), seed=1)
    for suffix in ("parquet", "arrow"):
        write_reports(reports, tmp_path / f"reports.{suffix}")
        assert read_reports(tmp_path / f"reports.{suffix}") == reports


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="domain must have at most 1048576 answers"):
        SummationHistogramEncoding(1.0, 2**20 + 1)
    with pytest.raises(InvalidValueError, match="too small"):
        SummationHistogramEncoding(1e-6, 10)
    for epsilon in (0.0, -1.0, math.nan, 42.1):
        with pytest.raises(InvalidValueError, match="epsilon must be"):
            SummationHistogramEncoding(epsilon, 10)
    oracle = SummationHistogramEncoding(1.0, 3)
    with pytest.raises(InvalidValueError, match="out of range"):
        tn.Reports(oracle, tn.Everyone(), [[0, 2**31, 0]], nodes=1)
