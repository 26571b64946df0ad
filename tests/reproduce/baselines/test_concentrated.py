"""From zero-concentrated differential privacy to epsilon and delta: never too small, and tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special

from turnout_reproduce.baselines.kernel import largest_rho, log_delta

PAIRS = [
    (epsilon, delta)
    for epsilon in (0.01, 0.1, 1.0, 5.0, 42.0)
    for delta in (1e-100, 1e-12, 1e-6, 0.01, 0.5)
]


def exact_log_delta(rho: float, epsilon: float, order: mpf) -> mpf:
    """Give corollary 13 of Canonne, Kamath, Steinke (2020) at one order, as printed."""
    bound = mp.exp((order - 1) * (order * mpf(rho) - mpf(epsilon))) / (order - 1)
    return mp.log(bound * (1 - 1 / order) ** order)


def best_log_delta(rho: float, epsilon: float) -> mpf:
    """Minimise over orders: first on a grid, then by golden sections."""
    logs = [mpf(x) / 4 for x in range(-120, 400)]
    values = [exact_log_delta(rho, epsilon, 1 + mp.exp(x)) for x in logs]
    best = min(range(len(logs)), key=values.__getitem__)
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(90):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if exact_log_delta(rho, epsilon, 1 + mp.exp(left)) < exact_log_delta(
            rho, epsilon, 1 + mp.exp(right)
        ):
            high = right
        else:
            low = left
    return exact_log_delta(rho, epsilon, 1 + mp.exp((low + high) / 2))


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.02, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.001, 0.3, 1.0, 10.0, 42.0])
def test_the_bound_of_delta_is_never_below_the_best_of_all_orders_and_close(
    rho: float, epsilon: float
) -> None:
    with mp.workdps(60):
        best = best_log_delta(rho, epsilon)
        found = log_delta(rho, epsilon)
        if best < 0:
            assert mpf(found) >= best
            assert found <= float(best) + 1e-9 * (1.0 + abs(float(best)))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_parameter_gives_its_delta_and_a_larger_one_does_not(
    epsilon: float, delta: float
) -> None:
    rho = largest_rho(epsilon, delta)
    with mp.workdps(60):
        assert best_log_delta(rho, epsilon) <= mp.log(mpf(delta))
        assert best_log_delta(rho * (1.0 + 1e-6), epsilon) > mp.log(mpf(delta))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_exact_delta_of_gaussian_noise_is_below_the_bound_and_not_far(
    epsilon: float, delta: float
) -> None:
    # Continuous Gaussian noise of that parameter has a closed form: Balle and Wang (2018).
    shift = math.sqrt(2.0 * largest_rho(epsilon, delta))
    first = float(special.log_ndtr(shift / 2.0 - epsilon / shift))
    second = epsilon + float(special.log_ndtr(-shift / 2.0 - epsilon / shift))
    exact = first + math.log1p(-math.exp(second - first))
    assert exact <= math.log(delta)
    assert exact > math.log(delta) - 5.0


@pytest.mark.parametrize(("shift", "variance"), [((1,), 2.0), ((1, 2), 5.0), ((3, 1, 1), 1.0)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_exact_delta_of_discrete_gaussian_vectors_is_below_the_bound(
    shift: tuple[int, ...], variance: float, epsilon: float
) -> None:
    reach = np.arange(-30, 31)
    law = np.exp(-(reach**2) / (2.0 * variance))
    law /= law.sum()
    masses, ratios = np.ones(1), np.zeros(1)
    for step in shift:
        # log P[x] - log P[x - step]
        loss = (step**2 - 2.0 * step * reach) / (2.0 * variance)
        masses = np.outer(masses, law).ravel()
        ratios = np.add.outer(ratios, loss).ravel()
    delta = float((masses * np.maximum(-np.expm1(epsilon - ratios), 0.0)).sum())
    rho = sum(step**2 for step in shift) / (2.0 * variance)
    assert delta > 0.0
    assert math.log(delta) <= log_delta(rho, epsilon)
