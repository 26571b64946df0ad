"""Variances of the estimators beside each other, and the mean inverse number of reports."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats
from tests.frequency.estimation.test_estimators import HALF, THIRD

import turnout as tn
from turnout.collecting.intervals import mean_inverse

GRID = [
    (size, epsilon, rate, share)
    for size in (2, 3, 10, 1000)
    for epsilon in (0.01, 1.0, 3.0, 10.0)
    for rate in (0.001, 0.3, 0.9, 1.0)
    for share in (0.0, 0.1, 0.5, 1.0)
]


def test_c_hat_never_has_a_larger_variance_than_g_the_reverse_of_theorem_3_5() -> None:
    nodes = 1000
    for size, epsilon, rate, share in GRID:
        oracle = tn.DirectEncoding(epsilon, size)
        counts = [0] * size
        counts[0], counts[1] = int(nodes * share), nodes - int(nodes * share)
        g, c_hat = (
            tn.estimator_variance(oracle, tn.Bernoulli(rate), method=method, true_counts=counts)[0]
            for method in ("g", "c_hat")
        )
        p, q = oracle.support_probabilities
        mean_support = share * p + (1 - share) * q
        gap = nodes * rate * q * (1 - rate) * (2 * mean_support - q) / (rate * (p - q)) ** 2
        assert g - c_hat == pytest.approx(gap, rel=1e-6, abs=1e-6 * g)
        assert c_hat < g or (rate == 1.0 and c_hat == pytest.approx(g, rel=1e-12))


def test_hajek_is_better_than_c_hat_for_all_but_the_rarest_answers() -> None:
    """To first order the gain is n f^2 (1 - pi) / pi; E[1/S] > 1 / (n pi) costs the second."""
    for size, epsilon, rate, share in GRID:
        nodes = 10_000_000
        counts = [0] * size
        counts[0], counts[1] = int(nodes * share), nodes - int(nodes * share)
        hajek, c_hat = (
            tn.estimator_variance(
                tn.DirectEncoding(epsilon, size),
                tn.Bernoulli(rate),
                method=method,
                true_counts=counts,
            )[0]
            for method in ("hajek", "c_hat")
        )
        gain = nodes * share**2 * (1 - rate) / rate
        assert c_hat - hajek == pytest.approx(gain, rel=1e-2, abs=2e-4 * c_hat)


def test_the_exact_variances_at_5000_nodes_are_those_that_disprove_theorem_3_5() -> None:
    """n = 5000, k = 10, eps = 1, pi = .3 and f = .1, that is 500 nodes hold the answer."""
    oracle, nodes, rate, holders = tn.DirectEncoding(1.0, 10), 5000, 0.3, 500
    counts = [holders] * 10
    g, c_hat = (
        tn.estimator_variance(oracle, tn.Bernoulli(rate), method=method, true_counts=counts)[0]
        for method in ("g", "c_hat")
    )
    assert round(g) == 74_740
    assert round(c_hat) == 69_431  # 69,430.5 at the realised probabilities
    p, q = oracle.support_probabilities
    f, scale = holders / nodes, (rate * (p - q)) ** 2
    # As printed: a random sum with the variance of an average node, and no covariance with S.
    spread = f * p * (1 - p) + (1 - f) * q * (1 - q)
    printed_g = nodes * rate * (spread + (1 - rate) * (f * p + (1 - f) * q) ** 2) / scale
    printed_c_hat = printed_g + nodes * rate * (1 - rate) * q**2 / scale
    assert round(printed_c_hat) == 77_641
    assert c_hat < g < printed_c_hat


def test_the_mean_inverse_number_of_reports_equals_its_exact_sum() -> None:
    for trials, rate in ((1, HALF), (4, THIRD), (30, Fraction(1, 8)), (60, Fraction(127, 128))):
        masses = {
            s: Fraction(comb(trials, s)) * rate**s * (1 - rate) ** (trials - s)
            for s in range(1, trials + 1)
        }
        exact = sum(mass / s for s, mass in masses.items()) / sum(masses.values())
        assert mean_inverse(trials, float(rate)) == pytest.approx(float(exact), rel=1e-12)


def test_the_mean_inverse_is_continuous_where_the_series_takes_over() -> None:
    below, above = mean_inverse(10_000_000, 0.0999999), mean_inverse(10_000_000, 0.1000001)
    assert below / above == pytest.approx(0.1000001 / 0.0999999, rel=1e-11)


@pytest.mark.parametrize("trials", [10**12, 10**15, 10**18])
def test_the_mean_inverse_has_its_poisson_limit_for_many_nodes_and_a_small_rate(
    trials: int,
) -> None:
    counts = np.arange(1, 200)
    mass = stats.poisson.pmf(counts, 3.0)
    limit = (mass / counts).sum() / mass.sum()
    assert mean_inverse(trials, 3.0 / trials) == pytest.approx(limit, rel=1e-9)
