"""The density of the mean law, from the draws of all users."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout.samplers import (
    MinimaxSampler,
    Normal,
    StandardNormal,
    Uniform,
    sample_population,
)
from turnout.samplers.population.points import PopulationEstimate

Floats = Any


def tilted(count: int, seed: int, slope: float = 0.8, half: float = 0.5) -> tuple[Floats, Any]:
    """Draws from ``Q ~ N(0, 1) exp(half * tanh(slope x))``, and its density, in the mollifier."""
    generator = np.random.default_rng(seed)
    proposals = generator.normal(size=8 * count)
    keep = generator.random(8 * count) < np.exp(half * np.tanh(slope * proposals) - half)
    grid = np.linspace(-12, 12, 200_001)
    weights = stats.norm.pdf(grid) * np.exp(half * np.tanh(slope * grid))
    total = weights.sum() * (grid[1] - grid[0])

    def density(x: Floats) -> Floats:
        return stats.norm.pdf(x) * np.exp(half * np.tanh(slope * x)) / total

    return proposals[keep][:count, None], density


def test_the_histogram_is_right_on_the_average_and_its_intervals_hold(
    statistical: ModuleType,
) -> None:
    # tanh is odd, so the constant is cosh-like and log Q/Q0 stays within +-.63.
    repeats, users = 120, 500
    reference = StandardNormal(1)
    _, density = tilted(1, 0)
    at = np.linspace(-2.5, 2.5, 41)[:, None]
    held, raw = 0, []
    for repeat in range(repeats):
        estimate = PopulationEstimate(tilted(users, repeat)[0], reference, (-1.0, 1.0))
        interval = estimate.interval(at, 0.9)
        if repeat == 0:
            # The mean of Q/Q0 over the cell of each point, from the edges.
            edges = np.concatenate([[-12.0], estimate._edges[0], [12.0]])
            grid = np.linspace(-12, 12, 400_001)
            masses = np.histogram(grid, edges, weights=density(grid))[0]
            base = np.histogram(grid, edges, weights=stats.norm.pdf(grid))[0]
            places = np.searchsorted(edges, at[:, 0]) - 1
            truth = stats.norm.pdf(at[:, 0]) * (masses / base)[places]
        inside = (interval.low <= truth + 1e-9) & (truth <= interval.high + 1e-9)
        held += bool(inside.all())
        raw.append(estimate._counts / users)
        errors = estimate.standard_errors(at)
        assert (errors >= 0).all()
    statistical.check_share(held, repeats, 0.9, 1.0)
    statistical.check_mean(np.array(raw), masses / masses.sum(), slack=2e-5)
    statistical.check_variance(
        np.array(raw)[:, 1:-1] / base[1:-1] * base.sum(),
        (raw_variance := (masses / masses.sum() * (1 - masses / masses.sum())) / users)[1:-1]
        / (base[1:-1] / base.sum()) ** 2,
        slack=0.02,
    )
    np.testing.assert_allclose(
        errors[places == 3] ** 2 * 1.0,
        (
            stats.norm.pdf(at[places == 3, 0]) ** 2
            * (raw[-1] * (1 - raw[-1]) / users)[3]
            / (base[3] / base.sum()) ** 2
        ),
        rtol=1e-3,
    )
    assert raw_variance.shape == masses.shape


def test_cutting_to_the_band_helps_and_never_hurts() -> None:
    draws, density = tilted(300, 1)
    reference = StandardNormal(1)
    at = np.linspace(-4, 4, 201)[:, None]
    truth = density(at[:, 0])
    free = PopulationEstimate(draws, reference, (-math.inf, math.inf))
    cut = PopulationEstimate(draws, reference, (-0.65, 0.65))
    before, after = np.abs(free.density(at) - truth), np.abs(cut.density(at) - truth)
    assert (after <= before + 1e-12).all()
    assert (after < before - 1e-6).any()
    ratio = np.log(cut.density(at)) - reference.log_density(at)
    assert (np.abs(ratio) <= 0.65 + 1e-12).all()
    np.testing.assert_allclose(cut.log_density(at), np.log(cut.density(at)))
    np.testing.assert_array_equal(cut.standard_errors(at), free.standard_errors(at))


def test_the_plane_works_too() -> None:
    reference = Normal([1.0, -1.0], [[1.0, 0.8], [0.8, 1.0]])
    draws = reference.draw(20_000, seed=1)
    at = reference.draw(500, seed=2)
    estimate = PopulationEstimate(draws, reference, (-0.5, 0.5))
    ratio = np.log(estimate.density(at)) - reference.log_density(at)
    assert np.abs(ratio).mean() < 0.15
    assert (np.abs(ratio) <= 0.5 + 1e-12).all()
    interval = estimate.interval(at)
    assert (interval.low <= interval.high).all()
    assert interval.level == 0.95
    truth = np.exp(reference.log_density(at))
    assert (interval.low <= truth).all()
    assert (truth <= interval.high).all()


def test_masses_of_cells_are_those_of_the_reference() -> None:
    draws = np.linspace(-2, 2, 1000)[:, None]
    estimate = PopulationEstimate(draws, StandardNormal(1), (-1, 1))
    edges = np.concatenate([[-np.inf], estimate._edges[0], [np.inf]])
    np.testing.assert_allclose(estimate._masses, np.diff(stats.norm.cdf(edges)), atol=1e-5)
    box = PopulationEstimate(draws, Uniform(-2.0, 2.0), (-1, 1))
    assert box.density([[0.0], [3.0]])[1] == 0.0
    assert box.density([[0.0]])[0] == pytest.approx(0.25, rel=0.05)


def test_cells_of_a_box_are_equal() -> None:
    ages = Uniform(17.0, 90.0)
    estimate = PopulationEstimate(ages.draw(200, seed=1), ages, (-0.5, 0.5))
    widths = np.diff(np.concatenate([[17.0], estimate._edges[0], [90.0]]))
    np.testing.assert_allclose(widths, 73.0 / 12.0, atol=1e-3)
    np.testing.assert_allclose(estimate._masses, 1.0 / 12.0, atol=1e-5)
    box = Uniform([0.0, -1.0], [1.0, 1.0])
    plane = PopulationEstimate(box.draw(400, seed=1), box, (-0.5, 0.5))
    for edges, low, high in zip(plane._edges, box.low, box.high, strict=True):
        np.testing.assert_allclose(np.ptp(np.diff([low, *edges, high])), 0.0, atol=1e-3)


def test_an_estimate_takes_what_samplers_take_as_reference() -> None:
    draws = StandardNormal(1).draw(200, seed=1)
    at = np.linspace(-2.0, 2.0, 9)[:, None]
    own = PopulationEstimate(draws, StandardNormal(1), (-1, 1))
    foreign = PopulationEstimate(draws, stats.norm(), (-1, 1))
    np.testing.assert_allclose(foreign.density(at), own.density(at), rtol=1e-6)
    assert repr(foreign.reference) == "as_reference(norm())"
    interval = own.interval([[0.0]])
    assert (
        repr(interval)
        == f"DensityInterval(low={interval.low!r}, high={interval.high!r}, level=0.95)"
    )


def test_the_band_of_the_minimax_sampler_is_its_own() -> None:
    sampler = MinimaxSampler(1.0, reference=StandardNormal(1), low=0.0, high=4.0, proposals=64)
    data = np.random.default_rng(1).normal(size=(40, 1))
    draws = sample_population(sampler, data, np.repeat([0, 1], 20), seed=1)
    estimate: Any = draws.estimate()
    # alpha = 1/4: b = 1 / (e/4 + 3/4).
    least = -math.log(math.e / 4 + 0.75)
    assert estimate.band == pytest.approx((least, least + 1.0))
