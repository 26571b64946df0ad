"""The same numbers from Google's dp-accounting, which knows other mechanisms by the same laws."""

from __future__ import annotations

import functools
import math
from types import ModuleType

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import turnout.accounting as ta

ROUNDS = [1, 100, 10_000]


@functools.cache
def poisson(sigma: float, rate: float, step: float) -> pld.PrivacyLossDistribution:
    """Return dp-accounting's upper bound of Poisson sampling; with connected dots it is tight."""
    return pld.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=step
    )


@functools.cache
def poisson_below(sigma: float, rate: float, step: float) -> pld.PrivacyLossDistribution:
    return pld.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=step, pessimistic_estimate=False,
        use_connect_dots=False,
    )  # fmt: skip


def composed(one: pld.PrivacyLossDistribution, rounds: int) -> pld.PrivacyLossDistribution:
    return one if rounds == 1 else one.self_compose(rounds)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize(
    ("sigma", "rate", "step"), [(1.0, 0.01, 3e-5), (2.0, 0.1, 5e-5), (0.8, 0.003, 3e-5)]
)
def test_full_participation_composes_as_poisson_sampling_does(
    sigma: float, rate: float, step: float, rounds: int
) -> None:
    mechanism = ta.RandomParticipation(1.0, rate, 25, sigma)
    theirs = composed(poisson(sigma, rate, step), rounds)
    for delta in (1e-3, 1e-6):
        upper = theirs.get_epsilon_for_delta(delta)
        lower, ours = mechanism.compose(rounds).epsilon_bounds(delta)
        assert lower <= upper
        assert ours == pytest.approx(upper, rel=2e-3, abs=1e-6)


def test_local_sampling_composes_as_random_participation_of_everybody() -> None:
    for rounds in ROUNDS:
        local = ta.LocalSampling(0.01, 1.0).compose(rounds).epsilon(1e-6)
        found = ta.RandomParticipation(1.0, 0.01, 25, 1.0).compose(rounds).epsilon(1e-6)
        assert found == pytest.approx(local, rel=1e-5)


@pytest.mark.parametrize("rounds", [1, 100])
def test_the_optimistic_distribution_is_never_above_ours(rounds: int) -> None:
    theirs = composed(poisson_below(1.0, 0.02, 1e-4), rounds)
    ours = ta.LocalSampling(0.02, 1.0).compose(rounds)
    for epsilon in (0.05, 0.3, 1.0):
        assert theirs.get_delta_for_epsilon(epsilon) <= ours.delta(epsilon) * (1 + 1e-9) + 1e-14


def test_one_round_has_the_same_delta_without_any_grid() -> None:
    theirs = poisson(1.3, 0.2, 1e-4)
    mechanism = ta.LocalSampling(0.2, 1.3)
    for epsilon in (0.01, 0.2, 0.9):
        ours = mechanism.delta(epsilon)
        assert ours <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-6)
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-4)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_gaussians_compose_to_a_gaussian_in_both_libraries(
    rounds: int, references: ModuleType
) -> None:
    sigma = 2.0 * math.sqrt(rounds)
    total = ta.GaussianMechanism(sigma).compose(rounds)
    for epsilon in (0.3, 1.0, 2.0):
        exact = float(references.gaussian_delta(epsilon, 2.0))
        lower, upper = total.delta_bounds(epsilon)
        assert lower <= exact * (1 + 1e-9)
        assert exact * (1 - 1e-9) <= upper <= exact * 1.01
    theirs = pld.from_gaussian_mechanism(2.0).get_epsilon_for_delta(1e-6)
    assert total.epsilon(1e-6) == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize("sigma", [0.7, 2.0, 6.0])
def test_discrete_gaussian_noise_on_one_count_is_the_same(sigma: float) -> None:
    theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-5)
    noise = ta.DiscreteGaussianNoise(sigma)
    for epsilon in (0.05, 0.4, 1.1):
        ours = noise.delta(epsilon, adjacency="add")
        # Their losses are rounded up to a grid of 1e-5.
        assert ours <= theirs.get_delta_for_epsilon(epsilon) + 1e-12
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3)


@pytest.mark.parametrize("scale", [0.8, 3.0])
def test_discrete_laplace_noise_on_one_count_is_the_same(scale: float) -> None:
    theirs = pld.from_discrete_laplace_mechanism(1 / scale, value_discretization_interval=1e-5)
    noise = ta.DiscreteLaplaceNoise(scale)
    for epsilon in (0.05, 0.2, 0.3):
        ours = noise.delta(epsilon, adjacency="add")
        assert ours <= theirs.get_delta_for_epsilon(epsilon) + 1e-12
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3)


def test_two_counts_of_discrete_gaussian_noise_are_two_of_theirs_composed() -> None:
    # Moving one person from a count to another shifts two independent noises by one.
    theirs = pld.from_discrete_gaussian_mechanism(3.0, value_discretization_interval=1e-5)
    theirs = theirs.self_compose(2)
    for epsilon in (0.1, 0.8):
        ours = ta.DiscreteGaussianNoise(3.0).delta(epsilon)
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3)


def test_a_grid_of_one_in_ten_thousand_overstates_tiny_rates() -> None:
    # Poisson sampling at the product of the rates: losses of one round are of the size of the grid.
    coarse = composed(poisson(2.49029, 1e-4, 1e-4), 1000).get_epsilon_for_delta(1e-5)
    fine = composed(poisson(2.49029, 1e-4, 4e-6), 1000).get_epsilon_for_delta(1e-5)
    ours = ta.CentralShuffling(0.001, 0.1, 2.49029).compose(1000).epsilon(1e-5)
    assert coarse == pytest.approx(0.0040, rel=0.01)
    assert fine == pytest.approx(0.00275, rel=0.01)
    assert ours == pytest.approx(fine, rel=0.01)
