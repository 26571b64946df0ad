"""The bound of random participation is never below the true divergence of a real client.

A client's gradients are drawn, its round is integrated, and the library must not be below. Space is
cut into boxes, so every value here is at most the true one: no error of quadrature has to be
allowed for, and a failure is a proof. The closest configuration of each setting is integrated again
with 30 digits.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from mpmath import mpf

from turnout.accounting import RandomParticipation

ADJACENCIES = ("remove", "add")

#: How many parameter sets, and real configurations for each of them.
SETTINGS = 100
CONFIGURATIONS = 204

#: Widths of the boxes in units of the noise, by the dimension that the gradients span. The first
#: axis lies along the new element, across the border of the event.
WIDTHS = {1: (0.02,), 2: (0.1, 0.2), 3: (0.25, 0.45, 0.45)}


def uniform_logarithm(random: np.random.Generator, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def draw_setting(seed: int) -> tuple[RandomParticipation, float, np.random.Generator]:
    """Draw a mechanism and an epsilon that is neither trivial nor out of reach of its rates."""
    random = np.random.default_rng(seed)
    rare = random.random() < 0.7
    client = uniform_logarithm(random, 1e-3, 1) if rare else 1 - uniform_logarithm(random, 1e-6, 1)
    mechanism = RandomParticipation(
        client_rate=client,
        sample_rate=uniform_logarithm(random, 0.01, 1),
        local_size=1 + seed % 6,
        noise_multiplier=uniform_logarithm(random, 0.4, 4),
    )
    if random.random() < 0.5:
        return mechanism, uniform_logarithm(random, 2e-3, 2), random
    scale = mechanism.client_rate * mechanism.sample_rate
    return mechanism, math.log1p(scale * uniform_logarithm(random, 0.1, 10)), random


@pytest.mark.parametrize("seed", range(SETTINGS))
def test_no_real_configuration_in_two_and_three_dimensions_is_above_the_bound(
    seed: int, configurations: ModuleType
) -> None:
    mechanism, epsilon, random = draw_setting(seed)
    rates = mechanism.client_rate, mechanism.sample_rate
    sigma = mechanism.noise_multiplier
    bounds = {way: mechanism.delta(epsilon, adjacency=way) for way in ADJACENCIES}
    assert mechanism.delta(epsilon) == max(bounds.values())
    closest: tuple[float, Any] = (0.0, None)
    for number in range(CONFIGURATIONS):
        kind = configurations.KINDS[(number // 2) % len(configurations.KINDS)]
        drawn = configurations.draw(random, 2 + number % 2, mechanism.local_size, kind)
        boxes = configurations.Round.of(drawn, rates[1], sigma, WIDTHS[drawn.dimension])
        for way, bound in bounds.items():
            # The tails of doubles are right to 1e-12.
            found = boxes.delta(epsilon, rates, way)
            assert found <= bound * (1 + 1e-11), f"{drawn}, {way}: {found} is above {bound}"
            if found > closest[0] * bound:
                closest = (found / bound, (drawn, boxes, way))
    if closest[1] is not None:
        drawn, boxes, way = closest[1]
        exact = (
            configurations.line_delta(drawn, epsilon, rates, sigma, way)
            if drawn.dimension == 1
            else boxes.delta_30_digits(epsilon, rates, way)
        )
        assert exact <= mpf(bounds[way])


def test_the_configurations_come_close_to_the_bound(configurations: ModuleType) -> None:
    # A test that is always far below would prove nothing: with full participation the bound is
    # attained by zero gradients, and for few elements nearly so by aligned ones.
    for client_rate, share in ((1.0, 1 - 1e-4), (0.9, 0.95), (0.2, 0.8)):
        mechanism = RandomParticipation(client_rate, 0.3, 1, 1.0)
        ratios = [
            configurations.Round.of(
                configurations.grouped(1.0, [(gradient, 1)]), 0.3, 1.0, (0.01,)
            ).delta(0.05, (client_rate, 0.3), "remove")
            / mechanism.delta(0.05, adjacency="remove")
            for gradient in (0.0, 1.0)
        ]
        assert share < max(ratios) <= 1


class Client(NamedTuple):
    """Gradients on a line: the new element has 1, groups of others have (gradient, how many)."""

    rates: tuple[float, float]
    sigma: float
    groups: list[tuple[float, int]]
    epsilon: float = 0.0


LARGE = [
    Client((0.001, 0.1), 1.065, [(1.0, 30)], 0.015),
    Client((0.001, 0.1), 1.065, [(1.0, 12), (0.0, 18)], 0.015),
    Client((0.1, 0.001), 0.646, [(0.3, 1000)], 0.015),
    Client((0.1, 0.001), 0.646, [(-1.0, 1000)], 0.015),
    Client((0.5, 0.2), 2.0, [(1.0, 25), (-1.0, 25)], 0.1),
    Client((0.99, 0.5), 0.5, [(-0.5, 20)], 0.4),
]


@pytest.mark.parametrize("client", LARGE)
def test_clients_with_many_elements_stay_below_the_bound_with_thirty_digits(
    client: Client, configurations: ModuleType
) -> None:
    real = configurations.grouped(1.0, client.groups)
    mechanism = RandomParticipation(*client.rates, real.local_size, client.sigma)
    for way in ADJACENCIES:
        exact = configurations.line_delta(real, client.epsilon, client.rates, client.sigma, way)
        assert exact <= mpf(mechanism.delta(client.epsilon, adjacency=way))


ROUNDS = 100
LINES = [
    Client((1.0, 0.1), 1.0, [(0.0, 3)]),
    Client((0.9, 0.2), 1.5, [(1.0, 2)]),
    Client((0.3, 0.3), 1.0, [(1.0, 1), (0.0, 2)]),
    Client((0.3, 0.3), 0.8, [(-1.0, 3)]),
    Client((0.05, 0.5), 1.2, [(1.0, 4)]),
    Client((0.01, 0.1), 1.0, [(1.0, 10), (0.0, 20)]),
    Client((0.5, 0.9), 2.0, [(0.7, 3), (-0.4, 2)]),
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("client", LINES)
def test_a_hundred_rounds_of_a_real_client_stay_below_the_composed_bound(
    client: Client, adjacency: str, configurations: ModuleType, losses: ModuleType
) -> None:
    rates, sigma = client.rates, client.sigma
    real = configurations.grouped(1.0, client.groups)
    composed = RandomParticipation(*rates, real.local_size, sigma).compose(ROUNDS, adjacency)
    laws = configurations.Round.of(real, rates[1], sigma, (5e-4,)).laws(*rates)
    one, other = laws if adjacency == "remove" else laws[::-1]
    truth = losses.lower_losses(one, other, 5e-5).compose(ROUNDS, 20.0, lower=True)
    epsilons = [truth.epsilon(delta) for delta in (0.05, 1e-3, 1e-6)]
    for epsilon in epsilons:
        # The transform's own rounding is an absolute 1e-15 or so.
        assert truth.delta(epsilon) <= composed.delta(epsilon) + 1e-13
    # And not by luck: the bound is of the same size.
    assert composed.epsilon(1e-3) < 10 * epsilons[1] + 0.05
