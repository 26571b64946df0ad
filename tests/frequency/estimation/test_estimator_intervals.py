"""Intervals of the estimators: exact, score and normal ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.frequency.estimation.test_estimators import uniform_tally

import turnout as tn
from turnout.errors import EstimatorError


@pytest.mark.parametrize("method", ["g", "c_hat", "T", "horvitz_thompson", "hajek"])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("support", [(60, 30, 10), (98, 1, 1)])
def test_a_score_limit_lies_exactly_z_standard_errors_of_itself_from_the_estimate(
    method: str, level: float, support: tuple[int, ...]
) -> None:
    estimate = uniform_tally(support, 205).estimate(method)
    interval = estimate.interval(level, method="score")
    model = estimate.estimation.model
    assert model is not None
    z = stats.norm.isf((1 - level) / 2)
    for limit, sign in ((interval.low, 1), (interval.high, -1)):
        distance = sign * (estimate.frequencies - limit)
        np.testing.assert_allclose(distance, z * np.sqrt(model.variance(limit)), rtol=1e-9)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_the_score_interval_is_wilsons_without_noise_in_a_huge_population(level: float) -> None:
    support = [0, 3, 47, 150]
    tally = uniform_tally(support, 10**12, epsilon=40.0, rate=2e-10)
    interval = tally.estimate().interval(level, method="score")
    wilson = [
        stats.binomtest(successes, 200).proportion_ci(level, method="wilson")
        for successes in support
    ]
    np.testing.assert_allclose(interval.low, [each.low for each in wilson], atol=1e-8)
    np.testing.assert_allclose(interval.high, [each.high for each in wilson], atol=1e-8)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_the_exact_interval_is_clopper_and_pearsons_without_noise(level: float) -> None:
    support = [0, 3, 47, 150]
    tally = uniform_tally(support, 10**12, epsilon=40.0, rate=2e-10)
    interval = tally.estimate().interval(level, method="exact")
    exact = [
        stats.binomtest(successes, 200).proportion_ci(level, method="exact")
        for successes in support
    ]
    np.testing.assert_allclose(interval.low, [each.low for each in exact], atol=1e-8)
    np.testing.assert_allclose(interval.high, [each.high for each in exact], atol=1e-8)


@pytest.mark.parametrize("method", ["g", "T", "hajek"])
def test_the_default_interval_is_exact_for_small_counts_and_score_for_large_ones(
    method: str,
) -> None:
    support = [60_000, 30_000, 10]
    estimate = uniform_tally(support, 10**7, epsilon=10.0, rate=0.009).estimate(method)
    default, score, exact = (estimate.interval(method=kind) for kind in ("auto", "score", "exact"))
    for found, of_score, of_exact in (
        (default.low, score.low, exact.low),
        (default.high, score.high, exact.high),
    ):
        np.testing.assert_array_equal(found, [*of_score[:2], of_exact[2]])
        assert of_exact[2] != of_score[2]


@pytest.mark.parametrize("method", ["c_hat", "horvitz_thompson"])
def test_an_estimator_that_is_no_count_has_no_exact_interval(method: str) -> None:
    estimate = uniform_tally([60, 30, 10], 205).estimate(method)
    assert estimate.interval().method == "score"
    with pytest.raises(EstimatorError, match="no exact interval"):
        estimate.interval(method="exact")


def test_a_normal_interval_is_the_estimate_with_z_standard_errors_on_both_sides() -> None:
    estimate = uniform_tally([60, 30, 10], 205).estimate()
    interval = estimate.interval(0.95, method="normal")
    half = stats.norm.isf(0.025) * estimate.standard_errors
    np.testing.assert_allclose(interval.low, estimate.frequencies - half, rtol=1e-12)
    np.testing.assert_allclose(interval.high, estimate.frequencies + half, rtol=1e-12)


@pytest.mark.parametrize(
    ("simultaneous", "tail"), [("bonferroni", 0.05 / 4), ("sidak", 1 - 0.95 ** (1 / 4))]
)
def test_a_simultaneous_interval_is_a_single_one_at_the_level_of_its_correction(
    simultaneous: str, tail: float
) -> None:
    estimate = uniform_tally([50, 30, 10, 10], 205).estimate()
    joint = estimate.interval(0.95, method="score", simultaneous=simultaneous)
    single = estimate.interval(1 - tail, method="score")
    np.testing.assert_allclose(joint.low, single.low, rtol=1e-9)
    np.testing.assert_allclose(joint.high, single.high, rtol=1e-9)


@pytest.mark.parametrize("nodes", [10**12, 10**15])
def test_score_and_normal_intervals_agree_for_very_many_nodes(nodes: int) -> None:
    oracle = tn.DirectEncoding(10.0, 3)
    estimate = oracle.simulate([nodes, nodes, nodes], seed=1).estimate()
    score = estimate.interval(method="score").width
    np.testing.assert_allclose(score, estimate.interval(method="normal").width, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 10.0, 42.0])
@pytest.mark.parametrize("size", [2, 3, 100])
@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_all_nodes_with_the_same_answer_give_finite_ordered_intervals_around_the_estimate(
    epsilon: float, size: int, rate: float
) -> None:
    participation = tn.Bernoulli(rate)
    tally = tn.DirectEncoding(epsilon, size).collect(
        np.zeros(1000, dtype=np.int64), participation=participation, seed=3
    )
    for method in ("g", "c_hat", "T", "horvitz_thompson", "hajek"):
        estimate = tally.estimate(method)
        for kind in ("normal", "score"):
            interval = estimate.interval(method=kind)
            slack = 1e-9 * np.abs(estimate.frequencies) + 1e-9
            assert np.isfinite(interval.low).all()
            assert np.isfinite(interval.high).all()
            assert (interval.low <= estimate.frequencies + slack).all()
            assert (estimate.frequencies <= interval.high + slack).all()


def test_an_interval_around_the_biased_c_is_refused_unless_everyone_takes_part() -> None:
    with pytest.raises(EstimatorError, match="no interval around 'c' covers"):
        uniform_tally([30, 20], 100).estimate("c").interval()
    full = uniform_tally([30, 20], 50, rate=1.0)
    np.testing.assert_array_equal(
        full.estimate("c").interval(method="score").low,
        full.estimate("c_hat").interval(method="score").low,
    )
