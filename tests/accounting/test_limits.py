"""Random participation between its limits, and the ways in which its bound grows and falls."""

from __future__ import annotations

import itertools
import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout.accounting as ta
from turnout.accounting.participation import participation_delta

ADJACENCIES = ("add_or_remove", "remove", "add")


def most_above(delta: float) -> float:
    """Say how much a bound may be above the exact value.

    What is rounded is an exponent, so that a relative error is larger where delta is tiny.
    """
    return delta * (1 + 1e-11 - 2e-13 * math.log(max(delta, 5e-324))) + 1e-307


RATES = st.floats(1e-4, 1.0)
SIGMAS = st.floats(0.05, 50.0)
EPSILONS = st.floats(0.0, 5.0)
SIZES = st.integers(0, 300)
SHARES = st.floats(0.01, 1.0)
MECHANISMS = st.builds(ta.RandomParticipation, RATES, RATES, SIZES, SIGMAS)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_client_without_other_elements_is_hidden_among_all(
    adjacency: str, references: ModuleType
) -> None:
    for epsilon in (0.0, 0.01, 0.3):
        alone = ta.RandomParticipation(0.25, 0.5, 0, 0.8).delta(epsilon, adjacency=adjacency)
        central = ta.CentralShuffling(0.25, 0.5, 0.8).delta(epsilon, adjacency=adjacency)
        assert alone == pytest.approx(central, rel=1e-11, abs=1e-300)
        exact = max(
            references.poisson_gaussian_delta(epsilon, 0.125, 0.8, way)
            for way in (("remove", "add") if adjacency == "add_or_remove" else (adjacency,))
        )
        references.check_bound(alone, exact)
        references.check_bound(central, exact)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_full_participation_is_local_sampling_whatever_the_client_holds(
    adjacency: str, references: ModuleType
) -> None:
    for epsilon in (0.0, 0.05, 0.2, 1.5):
        local = ta.LocalSampling(0.3, 1.2).delta(epsilon, adjacency=adjacency)
        for size in (0, 5, 1000):
            found = ta.RandomParticipation(1.0, 0.3, size, 1.2).delta(epsilon, adjacency=adjacency)
            assert found == pytest.approx(local, rel=1e-11, abs=1e-300)
        exact = max(
            references.poisson_gaussian_delta(epsilon, 0.3, 1.2, way)
            for way in (("remove", "add") if adjacency == "add_or_remove" else (adjacency,))
        )
        references.check_bound(local, exact)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_weak_client_sampling_is_the_rate_times_local_sampling(adjacency: str) -> None:
    for epsilon in (0.0, 0.05, 0.2, 1.5):
        weak = ta.WeakClientSampling(0.2, 0.3, 1.2).delta(epsilon, adjacency=adjacency)
        local = ta.LocalSampling(0.3, 1.2).delta(epsilon, adjacency=adjacency)
        assert weak == pytest.approx(0.2 * local, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_client_with_many_elements_cannot_hide_that_it_takes_part(adjacency: str) -> None:
    epsilon, weak = 0.02, ta.WeakClientSampling(0.2, 0.1, 1.0)
    limit = weak.delta(epsilon, adjacency=adjacency)
    found = [
        ta.RandomParticipation(0.2, 0.1, size, 1.0).delta(epsilon, adjacency=adjacency)
        for size in (0, 10, 100, 1000, 10_000)
    ]
    gaps = [limit - value for value in found]
    assert all(one > two for one, two in itertools.pairwise(gaps[:4]))
    assert found[-1] == pytest.approx(limit, rel=1e-10)
    assert all(value <= limit * (1 + 1e-10) for value in found)


def test_the_schemes_are_in_order() -> None:
    for epsilon in np.geomspace(1e-3, 1, 7):
        central, random, weak, local = (
            mechanism.delta(epsilon)
            for mechanism in (
                ta.CentralShuffling(0.1, 0.2, 1.0),
                ta.RandomParticipation(0.1, 0.2, 12, 1.0),
                ta.WeakClientSampling(0.1, 0.2, 1.0),
                ta.LocalSampling(0.2, 1.0),
            )
        )
        assert central < random < weak < local


def test_adding_has_no_delta_once_the_sampling_alone_covers_it() -> None:
    # Without the element nothing happens that has probability below (1-q) with it.
    edge = -math.log(1 - 0.3)
    for mechanism in (ta.RandomParticipation(0.4, 0.3, 20, 0.3), ta.LocalSampling(0.3, 0.3)):
        assert mechanism.delta(edge * (1 + 1e-9), adjacency="add") == 0
        assert mechanism.delta(edge * (1 - 1e-2), adjacency="add") > 0


@settings(max_examples=150, deadline=None)
@given(mechanism=MECHANISMS, epsilon=EPSILONS, share=SHARES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_less_of_anything_but_noise_is_never_worse(
    adjacency: str, mechanism: ta.RandomParticipation, epsilon: float, share: float
) -> None:
    client, sample = mechanism.client_rate, mechanism.sample_rate
    size, sigma = mechanism.local_size, mechanism.noise_multiplier
    most = mechanism.delta(epsilon, adjacency=adjacency)
    assert 0 <= most <= client * sample * (1 + 1e-9)
    for fewer in (
        ta.RandomParticipation(client * share, sample, size, sigma),
        ta.RandomParticipation(client, sample * share, size, sigma),
        ta.RandomParticipation(client, sample, int(size * share), sigma),
        ta.RandomParticipation(client, sample, size, sigma / share),
    ):
        assert fewer.delta(epsilon, adjacency=adjacency) <= most_above(most)


@settings(max_examples=100, deadline=None)
@given(mechanism=MECHANISMS, epsilons=st.lists(EPSILONS, min_size=2, max_size=6))
def test_delta_falls_as_epsilon_grows_and_an_array_gives_the_same_as_single_numbers(
    mechanism: ta.RandomParticipation, epsilons: list[float]
) -> None:
    ordered = np.sort(epsilons)
    deltas = mechanism.delta(ordered)
    assert all(after <= most_above(before) for before, after in itertools.pairwise(deltas))
    assert [mechanism.delta(epsilon) for epsilon in ordered] == deltas.tolist()


@settings(max_examples=60, deadline=None)
@given(mechanism=MECHANISMS, delta=st.floats(1e-12, 0.5))
def test_epsilon_is_the_least_that_reaches_delta_rounded_up(
    mechanism: ta.RandomParticipation, delta: float
) -> None:
    epsilon = mechanism.epsilon(delta)
    assert mechanism.delta(epsilon) <= delta
    if epsilon > 0:
        assert mechanism.delta(epsilon * (1 - 1e-8)) > delta * (1 - 1e-8)


def test_a_grid_of_parameters_gives_what_single_mechanisms_give() -> None:
    epsilons = np.array([0.01, 0.1])
    sigmas = np.array([[0.8], [1.5], [3.0]])
    found = participation_delta(epsilons, sigmas, 0.2, 0.1, 25)
    assert found.shape == (3, 2)
    for row, sigma in zip(found, sigmas[:, 0], strict=True):
        assert row.tolist() == ta.RandomParticipation(0.2, 0.1, 25, sigma).delta(epsilons).tolist()
