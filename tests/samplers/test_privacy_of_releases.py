"""What no draw of a value, and no released density, tells apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.samplers.test_privacy_end_to_end import (
    Floats,
    at_most_exponential,
    check_pairs,
    free,
    point_bounds,
)
from tests.samplers.test_privacy_of_chance import boxed

from turnout import _core
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    RandomizedResponseSampler,
)
from turnout_reproduce.baselines import BernsteinSampler, PrivateKernelDensity

# A world of few points


def sum_of(parts: Iterable[Fraction]) -> Fraction:
    return sum(parts, start=Fraction(0))


# Finitely many values


def value_sets(size: int) -> list[list[int]]:
    small = [
        list(values)
        for length in (1, 2, 3)
        for values in itertools.combinations_with_replacement(range(size), length)
    ]
    return [*small, [0] * 5000, [size - 1] * 5000 + [0], list(range(size)) * 700]


def finite_samplers(epsilon: float) -> list[Any]:
    return [
        FiniteMollifier(epsilon, 3),
        FiniteMollifier(epsilon, 4, reference=[0.7, 0.2, 0.09, 0.01]),
        MinimaxSampler(epsilon, 3),
        MinimaxSampler(epsilon, 5),
    ]


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 5.0, 42.0])
def test_no_two_data_sets_are_told_apart_by_a_value(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[list[int]] = []

    def choose(weights: Any, length: int, seed: int | None = None) -> Any:
        handed.append([int(weight) for weight in weights])
        return np.zeros(length, np.int64)

    monkeypatch.setattr(_core, "choose_weighted", choose)
    for sampler in finite_samplers(epsilon):
        handed.clear()
        size = sampler.domain_size
        for values in value_sets(size):
            sampler.fit(values).sample(1)
        # What is chosen by depends on the data within the limits only; the total does not.
        (total,) = {sum(weights) for weights in handed}
        laws = [
            {code: Fraction(weight, total) for code, weight in enumerate(weights)}
            for weights in handed
        ]
        largest = check_pairs([point_bounds(law) for law in laws], epsilon)
        assert largest <= math.log(sampler.realized_ratio) + 1e-15
        assert at_most_exponential(sampler.realized_ratio, epsilon)
        # That is no bound from far away.
        assert largest >= 0.99 * math.log(sampler.realized_ratio) - 1e-15


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 5.0, 42.0])
def test_no_two_data_sets_are_told_apart_by_a_randomized_value(
    epsilon: float, statistical: Any
) -> None:
    for size in (2, 4):
        own, other = _core.DirectEncoding(epsilon, size).words
        words = own + (size - 1) * other
        laws = []
        for values in value_sets(size):
            counts = np.bincount(values, minlength=size).tolist()
            law = {
                code: sum_of(
                    Fraction(count, len(values)) * Fraction(own if code == held else other, words)
                    for held, count in enumerate(counts)
                )
                for code in range(size)
            }
            assert sum(law.values()) == 1
            laws.append(law)
        assert check_pairs([point_bounds(law) for law in laws], epsilon) > 0.99 * epsilon
    sampler = RandomizedResponseSampler(epsilon, size).fit(values)
    drawn = sampler.sample(100_000, budget=free(), seed=1)
    statistical.check_law(np.bincount(drawn, minlength=size), [float(law[c]) for c in range(size)])


def test_values_follow_the_integers(statistical: Any) -> None:
    for sampler in finite_samplers(2.0):
        sampler.fit([0, 0, 1])
        total = int(sampler._weights_.sum())
        masses = [int(weight) / total for weight in sampler._weights_]
        drawn = sampler.sample(200_000, budget=free(), seed=2)
        statistical.check_law(np.bincount(drawn, minlength=len(masses)), masses)


# Released densities


class Noise:
    """Noise that adds up with the statistics to what was to come, whatever the statistics are."""

    __array_ufunc__ = None

    def __init__(self, result: Any, found: list[Any]) -> None:
        self._result = result
        self._found = found

    def __radd__(self, statistics: Any) -> Any:
        self._found.append(statistics)
        return self._result.copy()


def released(
    make: Callable[[], Any], people: Sequence[Floats], name: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[Any], set[float]]:
    """Fit on each data set with noise that gives the same sum; samplers, statistics, scales."""
    found: list[Any] = []
    scales: set[float] = set()

    def noise(scale: float, length: int, seed: int | None = None) -> Noise:
        scales.add(scale)
        return Noise(np.random.default_rng(7).integers(-90_000, 99_000, length), found)

    with monkeypatch.context() as patch:
        patch.setattr(_core, name, noise)
        samplers = [make().fit(person) for person in people]
    return samplers, found, scales


def check_post_processing(samplers: Sequence[Any]) -> None:
    """Samplers whose noisy statistics are the same are the same in all that they hold."""
    held = [
        {name: value for name, value in vars(sampler).items() if name not in ("budget_", "_box")}
        for sampler in samplers
    ]
    draws = [sampler.sample(50, seed=1) for sampler in samplers]
    for one, drawn in zip(held, draws, strict=True):
        assert one.keys() == held[0].keys()
        assert all(np.array_equal(one[name], value) for name, value in held[0].items())
        assert np.array_equal(drawn, draws[0])


#: Whole data sets; and data sets of nine records that differ in one.
DATASETS = [np.zeros((1, 1)), np.ones((7, 1)), boxed(1, 1000), boxed(2, 3), np.full((64, 1), 0.5)]


NEIGHBOURS = [np.vstack([boxed(3, 8), [[place]]]) for place in (0.0, 0.03, 0.31, 0.5, 0.97, 1.0)]


UNITS: list[tuple[str, list[Floats]]] = [("dataset", DATASETS), ("record", NEIGHBOURS)]


@pytest.mark.parametrize(("unit", "people"), UNITS)
@pytest.mark.parametrize("options", [{}, {"degree": 5}])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 12.0])
def test_the_bernstein_mechanism_releases_its_noisy_integers_alone(
    epsilon: float,
    options: dict[str, Any],
    unit: str,
    people: list[Floats],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make() -> BernsteinSampler:
        return BernsteinSampler(epsilon, bounds=(0.0, 1.0), unit=unit, **options)

    samplers, found, (scale,) = released(make, people, "discrete_laplace", monkeypatch)
    check_post_processing(samplers)
    # P[x] is proportional to e^(-rate |x|) on integers: a shift costs rate times its length.
    rate = Fraction(*_core.discrete_laplace_realized(scale))
    distances = [int(np.abs(one - other).sum()) for one, other in itertools.combinations(found, 2)]
    assert all(statistics.dtype == np.int64 for statistics in found)
    assert max(distances) * rate <= Fraction(samplers[0]._realized_epsilon_) <= Fraction(epsilon)
    assert max(distances) * rate > 0.5 * epsilon


@pytest.mark.parametrize(("unit", "people"), UNITS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (8.0, 1e-9)])
def test_the_private_kernel_density_releases_its_noisy_integers_alone(
    epsilon: float,
    delta: float,
    unit: str,
    people: list[Floats],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make() -> PrivateKernelDensity:
        return PrivateKernelDensity(
            epsilon, delta=delta, bounds=(0.0, 1.0), unit=unit, grid=64, bandwidth=0.05
        )

    samplers, found, (variance,) = released(make, people, "discrete_gaussian", monkeypatch)
    check_post_processing(samplers)
    assert all(statistics.dtype == np.int64 for statistics in found)
    squared = max(
        int(((one - other) ** 2).sum()) for one, other in itertools.combinations(found, 2)
    )
    assert 0.3 * samplers[0]._squared_sensitivity_ < squared <= samplers[0]._squared_sensitivity_
    # At this fineness the discrete law is the Gaussian: its delta in closed form.
    ratio = math.sqrt(samplers[0]._squared_sensitivity_ / variance)
    shift = epsilon / ratio
    normal = stats.norm
    gaussian = normal.cdf(ratio / 2 - shift) - math.exp(epsilon) * normal.cdf(-ratio / 2 - shift)
    assert delta / 50 < gaussian <= delta
