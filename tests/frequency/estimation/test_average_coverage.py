"""Intervals that cover on average over the answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.intervals import critical_values

Populations = Callable[[int, int], dict[str, npt.NDArray[np.float64]]]


def test_critical_values_are_those_of_the_authors() -> None:
    found = critical_values(np.array([0.0, 1.0, 4.0]), 0.95)
    assert found == pytest.approx([1.95996, 3.25920, 7.21635], abs=5e-6)


def test_critical_values_are_the_largest_over_all_laws_of_two_biases() -> None:
    from scipy import special

    for ratio in (0.1, 1.0, 9.0, 400.0):
        (value,) = critical_values(np.array([ratio]), 0.9)
        # A bias b with probability ratio / b^2, else another one, the mean square being the ratio.
        biases = np.sqrt(ratio) * np.geomspace(1.0, 30.0, 20_000)
        share = ratio / biases**2
        miss = special.ndtr(biases - value) + special.ndtr(-biases - value)
        worst = (share * miss + (1 - share) * 2 * special.ndtr(-value)).max()
        assert worst == pytest.approx(0.1, abs=1e-5)


def test_many_ratios_take_values_that_are_not_smaller() -> None:
    ratios = np.random.default_rng(1).uniform(0.0, 4.0, 3000)
    found = critical_values(ratios, 0.95)
    exact = critical_values(ratios[:50], 0.95)
    assert (found[:50] >= exact - 1e-12).all()
    assert (found[:50] <= exact + 0.1).all()


def test_it_covers_on_average_in_ten_populations(populations: Populations) -> None:
    oracle = tn.SubsetSelection(1.0, 100)
    for name, shares in populations(100, 1).items():
        counts = np.floor(shares * 50_000).astype(np.int64)
        truth = counts / counts.sum()
        held = widths = 0.0
        for seed in range(4):
            estimate = oracle.simulate(counts, seed=seed).estimate()
            interval = estimate.interval(0.9, method="empirical_bayes")
            held += interval.contains(truth).mean() / 4
            widths += interval.width.mean() / estimate.interval(0.9).width.mean() / 4
        # Of 400 answers: three standard errors below .9.
        assert held > 0.9 - 3 * np.sqrt(0.09 / 400), name
        assert widths <= 1.001, name


def test_it_says_that_it_holds_on_average_and_refuses_to_hold_for_all_at_once() -> None:
    estimate = tn.DirectEncoding(1.0, 5).simulate([100] * 5, seed=1).estimate()
    interval = estimate.interval(method="empirical_bayes")
    assert interval.method == "empirical_bayes"
    assert "on average over the answers" in repr(interval)
    assert estimate.interval().method != "empirical_bayes"
    with pytest.raises(InvalidValueError, match="simultaneous must be None"):
        estimate.interval(method="empirical_bayes", simultaneous="sidak")
    grouped = tn.GroupedTally(
        ["day"], {1: tn.DirectEncoding(1.0, 5).simulate([100] * 5, seed=1)}
    ).estimate()
    with pytest.raises(InvalidValueError, match="simultaneous must be None"):
        grouped.interval(method="empirical_bayes", simultaneous="sidak")
    tally = tn.DirectEncoding(1.0, 3).simulate([9, 3, 2], participation=tn.Bernoulli(0.5), seed=1)
    with pytest.raises(EstimatorError, match="no interval around 'c' covers"):
        tally.estimate("c").interval(method="empirical_bayes")
