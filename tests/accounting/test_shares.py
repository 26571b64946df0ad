"""The shares of the client that stays away: the bound is the best of all that they allow."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from scipy import special, stats

import turnout.accounting as ta

WAYS = ("remove", "add")

#: Rates of clients and samples, other elements, epsilon, delta; the noise with equal shares and
#: with the best.
TABLE = [
    ((0.001, 0.1, 30), 0.015, 1e-6, 2.49029, 2.37328),
    ((0.1, 0.001, 1000), 0.015, 1e-6, 0.81509, 0.80866),
    ((0.01, 0.01, 100), 0.1, 1e-6, 0.83904, 0.82035),
    ((0.01, 0.1, 10), 0.5, 1e-6, 1.22410, 1.19532),
    ((0.1, 0.1, 50), 0.1, 1e-5, 3.24105, 3.20912),
    ((0.3, 0.3, 5), 0.3, 1e-5, 3.39391, 3.34384),
    ((0.02, 0.05, 20), 0.05, 1e-6, 2.07995, 1.90836),
]


def excess(single: float, near: float, far: np.ndarray, places: np.ndarray, step: float):  # type: ignore[no-untyped-def]
    """Integrate [single N(0) - near N(step) - far N(place)]_+ by crossings found by bisection."""
    low, high = np.full(places.shape, -60.0), np.full(places.shape, 60.0)
    for _ in range(80):
        z = (low + high) / 2
        ratio = near * np.exp(step * z - step**2 / 2) + far * np.exp(places * z - places**2 / 2)
        low, high = np.where(ratio < single, z, low), np.where(ratio < single, high, z)
    tails = single * special.ndtr(low) - near * special.ndtr(low - step)
    tails = tails - far * special.ndtr(low - places)
    return np.maximum(tails, 0.0), special.ndtr(low - places)


def equal_shares_delta(epsilon: float, p: float, q: float, size: int, sigma: float) -> float:
    """Bound delta by convexity alone: each set of samples against all of the absent client."""
    gain, step, counts = math.expm1(epsilon), 1 / sigma, np.arange(size + 1)
    weights = stats.binom.pmf(counts, size, q)
    remove = excess(p * q, p * (gain + q), gain * (1 - p), (counts + 1) * step, step)[0]
    single = p * (q - gain * (1 - q))
    add = [0.0]
    if single > 0:
        add = excess(single, p * q * (1 + gain), gain * (1 - p), counts * step, step)[0]
    return float(max(weights @ remove, weights @ np.broadcast_to(add, counts.shape)))


@pytest.mark.parametrize(("client", "epsilon", "delta", "equal", "best"), TABLE)
def test_the_best_shares_need_less_noise_than_equal_ones(
    client: tuple[float, float, int], epsilon: float, delta: float, equal: float, best: float
) -> None:
    mechanism = ta.RandomParticipation(*client, 1.0)
    assert ta.calibrate_noise(mechanism, epsilon, delta) == pytest.approx(best, abs=6e-6)
    around = [equal_shares_delta(epsilon, *client, equal + off) for off in (-6e-6, 6e-6)]
    assert around[0] > delta > around[1]


def settings(count: int) -> list[tuple[float, float, int, float, float]]:
    random = np.random.default_rng(7)

    def between(low: float, high: float) -> float:
        return math.exp(random.uniform(math.log(low), math.log(high)))

    return [
        (
            between(1e-4, 1), between(1e-3, 1), int(random.integers(60)), between(0.3, 8),
            between(1e-4, 2),
        )
        for _ in range(count)
    ]  # fmt: skip


def test_equal_shares_are_never_below_the_best(references: ModuleType) -> None:
    smaller = 0
    for *client, epsilon in settings(60):
        best = ta.RandomParticipation(*client).delta(epsilon)
        equal = equal_shares_delta(epsilon, *client)
        assert best <= equal * (1 + 1e-11) + 1e-15
        smaller += best < 0.99 * equal
    assert smaller > 20
    for *client, epsilon in settings(3):
        exact = references.mixture_delta(epsilon, tuple(client), "add_or_remove")
        assert equal_shares_delta(epsilon, *client) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(6))
def test_no_other_shares_give_less(way: str, number: int) -> None:
    p, q, size, sigma, epsilon = settings(60)[10 * number]
    random, gain, step = np.random.default_rng(number), math.expm1(epsilon), 1 / sigma
    counts = np.arange(size + 1)
    weights = stats.binom.pmf(counts, size, q)
    single, near, places = p * q, p * (gain + q), (counts + 1) * step
    if way == "add":
        single, near, places = p * (q - gain * (1 - q)), p * q * (1 + gain), counts * step
    found = ta.RandomParticipation(p, q, size, sigma).delta(epsilon, way)
    if single <= 0:
        assert found == 0.0
        return
    far = gain * (1 - p)
    for power in (0.0, 0.5, 1.0, 3.0):
        shares = random.exponential(size=size + 1) ** power * np.exp(-power * counts)
        shares = shares / (weights @ shares)
        bound = weights @ excess(single, near, far * shares, places, step)[0]
        assert found <= bound * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("way", WAYS)
def test_the_bound_composes_because_it_is_convex(way: str) -> None:
    for *client, epsilon in settings(12):
        mechanism = ta.RandomParticipation(*client)
        other = WAYS[way == "remove"]
        top = 3 * epsilon
        alphas = np.linspace(math.exp(-top), math.exp(top), 801)
        above = alphas >= 1
        profile = np.empty_like(alphas)
        profile[above] = mechanism.delta(np.log(alphas[above]), way)
        below = alphas[~above]
        profile[~above] = 1 - below + below * mechanism.delta(-np.log(below), other)
        bends = np.diff(profile, 2)
        assert bends.min() >= -4e-15
        assert (profile >= np.maximum(0.0, 1 - alphas) - 1e-15).all()
        assert np.diff(profile).max() <= 4e-15


def test_shares_that_reach_every_set_make_the_bound_that_of_aligned_gradients(
    configurations: ModuleType,
) -> None:
    # Seen from the client that stays away all sets have one event.
    for (p, q, size, sigma), epsilon in (((0.3, 0.6, 2, 2.0), 0.2), ((0.05, 0.8, 1, 1.5), 0.1)):
        aligned = configurations.grouped(1.0, [(1.0, size)])
        exact = configurations.line_delta(aligned, epsilon, (p, q), sigma, "remove")
        bounds = ta.RandomParticipation(p, q, size, sigma).compose(1, "remove")
        if bounds.delta_bounds(epsilon).exact:
            assert bounds.delta(epsilon) == pytest.approx(float(exact), rel=1e-11)


def test_a_hundred_thousand_elements_are_summed_to_the_same_bound(references: ModuleType) -> None:
    for setting, epsilon in (((0.2, 2e-5, 10**5, 1.0), 0.1),):
        for way in WAYS:
            exact = references.best_shares_delta(epsilon, setting, way)
            found = ta.RandomParticipation(*setting).delta(epsilon, way)
            references.check_bound(found, exact)


@pytest.mark.parametrize("sigma", [1e-300, 1e-6, 0.02, 1e6, 1e300])
def test_lower_values_have_an_answer_at_the_ends_of_all_ranges(sigma: float) -> None:
    for client in ((0.3, 0.2, 7), (1e-9, 1e-6, 10**9)):
        composed = ta.RandomParticipation(*client, sigma).compose(1)
        for epsilon in (0.0, 0.1, 30.0):
            low, high = composed.delta_bounds(epsilon)
            assert 0.0 <= low <= high <= 1.0


def test_the_configuration_that_is_named_reaches_its_delta_in_simulation() -> None:
    p, q, size, sigma, epsilon, runs = 0.3, 0.3, 8, 1.0, 0.3, 400_000
    bounds = ta.RandomParticipation(p, q, size, sigma).compose(1, "remove").delta_bounds(epsilon)
    assert bounds.reached == "8 other gradients at 75 degrees to the new one"
    turned = np.array([math.cos(math.radians(75)), math.sin(math.radians(75))])
    random, new = np.random.default_rng(3), np.array([1.0, 0.0])
    counts = np.arange(size + 1)
    masses = stats.binom.pmf(counts, size, q)

    def density(seen: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return np.exp(-((seen - mean) ** 2).sum(axis=1) / (2 * sigma**2))

    def ratio(seen: np.ndarray) -> np.ndarray:
        without = (1 - p) * density(seen, np.zeros(2))
        with_it = without.copy()
        for count, mass in zip(counts, masses, strict=True):
            absent = density(seen, count * turned)
            without += p * mass * absent
            with_it += p * mass * ((1 - q) * absent + q * density(seen, count * turned + new))
        return np.asarray(with_it / without)

    shares = []
    for holds in (True, False):
        there = random.random(runs) < p
        means = (there * random.binomial(size, q, runs))[:, None] * turned
        sampled = there & (random.random(runs) < q) & holds
        seen = means + sampled[:, None] * new + sigma * random.standard_normal((runs, 2))
        shares.append(float((ratio(seen) > math.exp(epsilon)).mean()))
    gap = shares[0] - math.exp(epsilon) * shares[1]
    spread = math.sqrt(sum(share * (1 - share) for share in shares) / runs) * math.exp(epsilon)
    assert bounds.low == pytest.approx(gap, abs=5 * spread)
    assert 5 * spread < 0.3 * bounds.low
