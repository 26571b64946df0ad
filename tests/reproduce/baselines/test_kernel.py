"""Private kernel density: its sensitivity, its noise, its density and its draws."""

from __future__ import annotations

import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf
from scipy import integrate, stats

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.baselines import kernel
from turnout_reproduce.baselines.kernel import PrivateKernelDensity

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Recorder:
    """Stands in for the noise: writes down what is asked for, and gives zeros."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, int, int | None]] = []

    def __call__(self, variance: float, length: int, seed: int | None = None) -> Integers:
        self.calls.append((variance, length, seed))
        return np.zeros(length, dtype=np.int64)


def exact(sampler: PrivateKernelDensity, records: Floats) -> Integers:
    """Give the integers to which a fit adds noise."""
    kept = []
    original = PrivateKernelDensity._statistics

    def keep(self: PrivateKernelDensity, *arguments: Any) -> Integers:
        kept.append(original(self, *arguments))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateKernelDensity, "_statistics", keep)
        sampler.fit(records)
    return kept[0]


def corners(dimensions: int) -> list[Floats]:
    return [np.zeros((7, dimensions)), np.ones((900, dimensions)), np.full((1, dimensions), 0.5)]


@pytest.mark.parametrize(("dimensions", "grid"), [(1, 64), (2, 12)])
@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_no_two_data_sets_differ_by_more_than_the_sensitivity(
    dimensions: int, grid: int, bandwidth: float, epsilon: float
) -> None:
    rng = np.random.default_rng(dimensions)
    sampler = PrivateKernelDensity(
        epsilon, bounds=(0.0, 1.0), bandwidth=bandwidth, grid=grid, delta=1e-3
    )
    drawn = [
        rng.beta(*rng.choice([0.1, 1.0, 9.0], 2), (int(rng.choice([1, 2, 5, 60])), dimensions))
        for _ in range(20)
    ]
    found = [exact(sampler, data) for data in [*drawn, *corners(dimensions)]]
    distances = [int(((one - other) ** 2).sum()) for one in found for other in found]
    assert max(distances) <= sampler._squared_sensitivity_
    # What rounding adds counts where the noise is large in units of the statistics.
    assert max(distances) > (0.95 if epsilon == 1.0 else 0.6) * sampler._squared_sensitivity_


@pytest.mark.parametrize(("dimensions", "grid"), [(1, 64), (2, 12)])
@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_no_two_records_differ_by_more_than_the_sensitivity(
    dimensions: int, grid: int, bandwidth: float
) -> None:
    rng = np.random.default_rng(dimensions)
    sampler = PrivateKernelDensity(
        bounds=(0.0, 1.0), bandwidth=bandwidth, grid=grid, delta=1e-3, unit="record"
    )
    data = rng.uniform(0.0, 1.0, (11, dimensions))
    found = []
    for record in [*rng.uniform(0.0, 1.0, (15, dimensions)), *np.concatenate(corners(dimensions))]:
        changed = data.copy()
        changed[4] = record
        found.append(exact(sampler, changed))
        if len(found) > 25:
            break
    distances = [int(((one - other) ** 2).sum()) for one in found for other in found]
    assert 0.99 * sampler._squared_sensitivity_ < max(distances) <= sampler._squared_sensitivity_


def test_the_sensitivity_of_a_table_is_that_of_all_pairs_of_its_rows() -> None:
    table = np.random.default_rng(1).integers(-(2**20), 2**20, (700, 9))
    rows = [[int(entry) for entry in row] for row in table]
    largest = max(
        sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
        for position, one in enumerate(rows)
        for other in rows[:position]
    )
    assert kernel._squared_distance(table) == largest
    with mp.workdps(50):
        needed = (mp.sqrt(largest) + 3) ** 2
        assert needed <= kernel._after_rounding(largest, 9) <= needed * (1 + mpf(10) ** -6)


def test_rounded_means_may_be_farther_apart_than_two_rows_and_the_sensitivity_holds() -> None:
    # The unit of the table is small here, so rounding is large.
    sampler = PrivateKernelDensity(5e-4, bounds=(0.0, 1.0), bandwidth=0.1, grid=32)
    rng = np.random.default_rng(1)
    found = np.array(
        [exact(sampler, rng.uniform(size=(int(rng.integers(2, 7)), 1))) for _ in range(1500)]
    )
    rows = np.array([exact(sampler, np.array([[(i + 0.5) / 32]])) for i in range(32)])
    between_rows, between_means = (
        max(int(((one - points) ** 2).sum(axis=1).max()) for one in points)
        for points in (rows, found)
    )
    assert between_rows < between_means <= sampler._squared_sensitivity_


def test_the_sensitivity_is_that_of_the_space_of_the_kernel() -> None:
    # |k(a, .) - k(b, .)| = sqrt(2 (1 - k(a, b))), at the two ends of the box.
    sampler = PrivateKernelDensity(42.0, bounds=(0.0, 1.0), bandwidth=0.4, unit="record", grid=100)
    ends = [exact(sampler, np.array([[end]])) for end in (0.0, 1.0)]
    between = math.exp(-0.5 * (0.99 / 0.4) ** 2)
    unit_squared = sampler._squared_sensitivity_ / (2.0 * (1.0 - between))
    distance = int(((ends[0] - ends[1]) ** 2).sum())
    assert math.isclose(distance, sampler._squared_sensitivity_, rel_tol=1e-4)
    # A row of the table has the length of the unit.
    assert math.isclose((ends[0].astype(float) ** 2).sum(), unit_squared, rel_tol=1e-4)


@pytest.mark.parametrize(("grid", "widths"), [((50,), (0.1,)), ((9, 14), (0.2, 0.5))])
def test_the_coordinates_reproduce_the_kernel(
    grid: tuple[int, ...], widths: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    features = kernel._features(grid, widths)
    axes = [
        (np.arange(size) + 0.5) / size / width for size, width in zip(grid, widths, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(grid))
    gaps = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(features @ features.T, np.exp(-0.5 * gaps), atol=1e-4)
    monkeypatch.setattr(kernel, "_RANK", 3)
    fewer = kernel._features(grid, widths)
    np.testing.assert_allclose(fewer, features[:, :3], atol=1e-12)


@pytest.mark.parametrize("unit", ["dataset", "record"])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 10.0, 42.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_the_noise_asked_for_gives_epsilon_and_delta(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, delta: float, unit: str
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(kernel._core, "discrete_gaussian", recorder)
    sampler = PrivateKernelDensity(
        epsilon, delta=delta, bounds=(0.0, 1.0), grid=50, unit=unit, random_state=7
    ).fit(np.full((100, 1), 0.5))
    assert recorder.calls == [(sampler._variance_, sampler._rank_, 7)]
    rho = Fraction(sampler._squared_sensitivity_) / (2 * Fraction(sampler._variance_))
    # Corollary 13 of Canonne, Kamath, Steinke (2020) at some order above one.
    with mp.workdps(50):
        exact_rho = mpf(rho.numerator) / rho.denominator
        orders = [1 + mp.exp(mpf(x) / 50) for x in range(-300, 700)]
        bounds = [
            mp.exp((a - 1) * (a * exact_rho - mpf(epsilon))) / (a - 1) * (1 - 1 / a) ** a
            for a in orders
        ]
        # The best of a fine grid of orders is off by little, and only upwards.
        assert min(bounds) <= mpf(delta) * (1 + mpf(10) ** -2)
        assert min(bounds) >= mpf(delta) * (1 - mpf(10) ** -6)


def test_the_noise_is_a_gaussian_process_with_the_kernel_as_its_covariance(
    statistical: ModuleType,
) -> None:
    sampler = PrivateKernelDensity(
        epsilon=3.0, bounds=(0.0, 1.0), bandwidth=0.2, grid=40, random_state=1
    )
    data = np.array([[0.3], [0.7], [0.71]])
    sampler.fit(data)
    drawn = np.array([sampler._release(data, None)[0] for _ in range(3000)])
    cells = np.array([0, 10, 13, 39])
    centres = (cells + 0.5) / 40
    to_mass = 1.0 / 40 / (0.2 * math.sqrt(2.0 * math.pi))
    kernels = np.exp(-0.5 * ((centres[:, None] - centres) / 0.2) ** 2)
    estimate = np.exp(-0.5 * ((centres[:, None] - np.array([0.3125, 0.7125, 0.7125])) / 0.2) ** 2)
    statistical.check_mean(drawn[:, cells] / to_mass, estimate.mean(axis=1), slack=1e-3)
    # The squared distance of the two ends of the box is two units and a little less, and rounding
    # adds a little.
    unit_squared = sampler._squared_sensitivity_ / 2.0
    noise = sampler._variance_ / unit_squared
    statistical.check_covariance(drawn[:, cells] / to_mass, noise * kernels)


def test_the_noise_of_a_whole_data_set_does_not_fall_with_its_size() -> None:
    variances = {
        count: PrivateKernelDensity(bounds=(0.0, 1.0), grid=30, bandwidth=0.1)
        .fit(np.full((count, 1), 0.5))
        ._variance_
        for count in (1, 5000)
    }
    assert variances[1] == variances[5000]


def test_the_estimate_is_the_kernel_estimate_where_the_noise_is_small() -> None:
    data = np.random.default_rng(1).normal(1.0, 0.3, (100_000, 1)).clip(-1.0, 3.0)
    sampler = PrivateKernelDensity(
        epsilon=42.0,
        bounds=(-1.0, 3.0),
        bandwidth=0.1,
        unit="record",
        uniform_weight=0.0,
        random_state=3,
    ).fit(data)
    points = np.linspace(-0.2, 2.2, 50)
    found = np.exp(sampler.score_samples(points[:, None]))
    centres = np.floor((points + 1.0) * 128) / 128 - 1.0 + 1.0 / 256
    expected = stats.norm.pdf(centres[:, None], data[:, 0], 0.1).mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=0.005)


def test_the_log_density_integrates_to_one_and_draws_follow_it(statistical: ModuleType) -> None:
    data = np.random.default_rng(1).normal(1.0, 0.3, (3000, 1)).clip(-1.0, 3.0)
    sampler = PrivateKernelDensity(
        epsilon=0.5, bounds=(-1.0, 3.0), unit="record", grid=48, random_state=3
    ).fit(data)
    edges = np.linspace(-1.0, 3.0, 49)
    total, _ = integrate.quad(
        lambda x: math.exp(sampler.score(np.array([[x]]))),
        -1.0,
        3.0,
        points=list(edges[1:-1]),
        limit=200,
    )
    assert math.isclose(total, 1.0, rel_tol=1e-9)
    draws = sampler.sample(200_000, seed=8)[:, 0]
    masses = [
        math.exp(sampler.score(np.array([[middle]]))) * (4.0 / 48)
        for middle in 0.5 * (edges[1:] + edges[:-1])
    ]
    reached = np.append(0.0, np.cumsum(masses))
    law = stats.kstest(draws, lambda x: np.interp(x, edges, reached))
    assert law.pvalue > statistical.ALPHA


def test_draws_follow_the_density_in_two_dimensions(statistical: ModuleType) -> None:
    data = np.random.default_rng(1).uniform([0.0, -1.0], [1.0, 0.0], (3000, 2))
    sampler = PrivateKernelDensity(
        epsilon=1.0,
        bounds=[(-1.0, 2.0), (-2.0, 1.0)],
        unit="record",
        grid=10,
        bandwidth=0.2,
        uniform_weight=0.05,
        random_state=3,
    ).fit(data)
    edges = [np.linspace(low, low + 3.0, 21) for low in (-1.0, -2.0)]
    middles = np.stack(
        np.meshgrid(*[0.5 * (edge[1:] + edge[:-1]) for edge in edges], indexing="ij"), axis=-1
    ).reshape(-1, 2)
    masses = np.exp(sampler.score_samples(middles)) * (3.0 / 20) ** 2
    assert math.isclose(masses.sum(), 1.0, rel_tol=1e-9)
    observed, _, _ = np.histogram2d(*sampler.sample(200_000, seed=8).T, bins=edges)
    statistical.check_law(observed.ravel(), masses)
    # Most of it is where the data are.
    own = (middles[:, 0] > 0) & (middles[:, 0] < 1) & (middles[:, 1] > -1) & (middles[:, 1] < 0)
    assert 0.5 < masses[own].sum() < 0.95


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"delta": 0.0}, InvalidValueError, "delta must be a number of at least 1e-100"),
        ({"delta": 1.0}, InvalidValueError, "delta"),
        ({"delta": "small"}, InvalidTypeError, "delta"),
        ({"grid": 1}, InvalidValueError, "grid must be an integer from 2 to 4096"),
        ({"grid": 5000}, InvalidValueError, "grid"),
        ({"grid": 9.0}, InvalidTypeError, "grid"),
        ({"bandwidth": 0.0}, InvalidValueError, "bandwidth"),
        ({"bandwidth": math.nan}, InvalidValueError, "bandwidth"),
        ({"bandwidth": (0.1, 0.1)}, InvalidValueError, "bandwidth"),
        ({"bandwidth": "wide"}, InvalidTypeError, "bandwidth"),
        ({"epsilon": 2e-4}, InvalidValueError, "epsilon must be larger"),
    ],
)
def test_bad_parameters_are_named(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PrivateKernelDensity(**{"bounds": (0.0, 1.0), **parameters}).fit([[0.5]])


def test_more_than_two_features_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="X must have at most 2 features"):
        PrivateKernelDensity(bounds=(0.0, 1.0)).fit(np.full((3, 3), 0.5))
    with pytest.raises(InvalidValueError, match="grid must be an integer from 2 to 64"):
        PrivateKernelDensity(bounds=(0.0, 1.0), grid=65).fit(np.full((3, 2), 0.5))
