"""Post-processing: the nearest distribution, found a second way by trying every support."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.projection import PROJECTIONS, clip_normalize, norm_sub, simplex

Floats = npt.NDArray[np.float64]
Projection = Callable[[Floats], Floats]


def nearest_by_enumeration(frequencies: Floats) -> Floats:
    """The best point among the projections onto every face of the simplex that lie inside it."""
    best, least = frequencies, math.inf
    for kept in itertools.product([False, True], repeat=frequencies.size):
        inside = np.array(kept)
        if not inside.any():
            continue
        shift = (1 - frequencies[inside].sum()) / inside.sum()
        candidate = np.where(inside, frequencies + shift, 0.0)
        distance = float(((candidate - frequencies) ** 2).sum())
        if (candidate >= 0).all() and distance < least:
            best, least = candidate, distance
    return best


def random_frequencies(seed: int, total: float | None = None) -> Floats:
    """Noisy frequencies; with a total, those sum to it."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 9))
    noisy = generator.dirichlet(np.ones(size)) + generator.normal(0, generator.uniform(0, 1), size)
    return noisy if total is None else noisy + (total - noisy.sum()) / size


def test_simplex_finds_the_nearest_distribution() -> None:
    for seed in range(200):
        frequencies = random_frequencies(seed)
        nearest = nearest_by_enumeration(frequencies)
        np.testing.assert_allclose(simplex(frequencies), nearest, atol=1e-12)


@pytest.mark.parametrize("projection", PROJECTIONS.values(), ids=PROJECTIONS)
def test_a_projection_is_a_distribution_that_keeps_the_order_and_stays_where_it_is(
    projection: Projection,
) -> None:
    for seed in range(100):
        frequencies = random_frequencies(seed, total=1.0 + seed % 3)
        result = projection(frequencies)
        assert (result >= 0).all()
        assert result.sum() == pytest.approx(1.0, abs=1e-12)
        assert (np.diff(result[np.argsort(frequencies)]) >= -1e-15).all()
        np.testing.assert_allclose(projection(result), result, atol=1e-12)


def test_norm_sub_is_the_simplex_projection_of_estimates_that_add_up_to_one_or_more() -> None:
    for seed in range(200):
        frequencies = random_frequencies(seed, total=1.0 + seed % 2)
        np.testing.assert_allclose(norm_sub(frequencies), simplex(frequencies), atol=1e-12)


def test_norm_sub_leaves_negatives_at_zero_where_the_simplex_projection_lifts_them() -> None:
    frequencies = np.array([0.5, -0.01, 0.2])
    np.testing.assert_allclose(norm_sub(frequencies), [0.65, 0.0, 0.35])
    np.testing.assert_allclose(simplex(frequencies), frequencies + 0.31 / 3)
    nearest = nearest_by_enumeration(frequencies)
    np.testing.assert_allclose(simplex(frequencies), nearest, atol=1e-12)


def test_the_simplex_projection_ignores_a_common_shift_and_norm_sub_does_not() -> None:
    frequencies = np.array([0.6, 0.1, -0.2, 0.3])
    np.testing.assert_allclose(simplex(frequencies - 0.4), simplex(frequencies), atol=1e-12)
    assert np.abs(norm_sub(frequencies - 0.4) - norm_sub(frequencies)).max() > 0.01


def test_without_a_positive_frequency_norm_sub_keeps_the_largest_and_clipping_is_refused() -> None:
    frequencies = np.array([-0.5, -0.1, -0.2])
    np.testing.assert_allclose(norm_sub(frequencies), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(simplex(frequencies), [0.1, 0.5, 0.4])
    with pytest.raises(EstimatorError, match="needs at least one positive estimate"):
        clip_normalize(frequencies)


def test_clip_normalize_scales_the_positive_frequencies() -> None:
    np.testing.assert_allclose(
        clip_normalize(np.array([0.6, -0.3, 0.2, 0.0])), [0.75, 0.0, 0.25, 0.0]
    )


def test_the_simplex_projection_is_nearest_in_the_metric_of_equally_correlated_errors() -> None:
    """Errors with one variance and one covariance; estimates that do not add up to one."""
    for seed in range(20):
        frequencies = random_frequencies(seed)
        size = frequencies.size
        for covariance in (-0.9 / size, 0.5):
            metric = np.linalg.inv(np.eye(size) * (1 - covariance) + covariance)

            def loss(point: Floats, target: Floats = frequencies, metric: Floats = metric) -> float:
                return float((point - target) @ metric @ (point - target))

            found = simplex(frequencies)
            generator = np.random.default_rng(seed)
            for other in generator.dirichlet(np.ones(size), size=50):
                # At the nearest point of a convex set, no direction within it leads downwards.
                slope = 2 * (other - found) @ metric @ (found - frequencies)
                assert slope >= -1e-10
                assert loss(found) <= loss(other) + 1e-12


@pytest.mark.parametrize("projection", [simplex, norm_sub], ids=["simplex", "norm_sub"])
def test_huge_frequencies_project_to_the_largest(projection: Projection) -> None:
    np.testing.assert_allclose(projection(np.array([1e17, -1e17])), [1.0, 0.0])


def noisy_estimate(seed: int = 0, method: str = "hajek") -> tn.FrequencyEstimate:
    oracle = tn.DirectEncoding(0.3, 12)
    tally = oracle.simulate([500, 200, 100] + [0] * 9, participation=tn.Bernoulli(0.5), seed=seed)
    return tally.estimate(method)


@pytest.mark.parametrize("method", ["hajek", "c_hat", "g"])
def test_projecting_an_estimate_never_takes_it_away_from_the_truth(method: str) -> None:
    """A projection onto a convex set that holds the truth."""
    truth = np.array([500, 200, 100] + [0] * 9) / 800
    for seed in range(30):
        estimate = noisy_estimate(seed, method)
        projected = estimate.project("simplex")
        assert projected.distance(truth, "l2") <= estimate.distance(truth, "l2") + 1e-12


def test_the_estimates_of_hajek_add_up_to_one_before_any_projection() -> None:
    for seed in range(20):
        assert noisy_estimate(seed).frequencies.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("method", PROJECTIONS)
def test_a_projected_estimate_names_the_method_and_keeps_errors_and_intervals(method: str) -> None:
    estimate = noisy_estimate()
    assert estimate.frequencies.min() < 0
    projected = estimate.project(method)
    assert projected.postprocessing == method
    assert estimate.postprocessing == "none"
    np.testing.assert_allclose(projected.frequencies, PROJECTIONS[method](estimate.frequencies))
    np.testing.assert_array_equal(projected.counts, projected.frequencies * 800)
    np.testing.assert_array_equal(projected.standard_errors, estimate.standard_errors)
    np.testing.assert_array_equal(projected.interval().low, estimate.interval().low)


def test_projecting_again_starts_from_the_original_and_none_returns_to_it() -> None:
    estimate = noisy_estimate()
    twice = estimate.project("clip_normalize").project("simplex")
    np.testing.assert_array_equal(twice.frequencies, estimate.project("simplex").frequencies)
    np.testing.assert_array_equal(twice.project("none").frequencies, estimate.frequencies)
    assert twice.project("none").postprocessing == "none"
    np.testing.assert_array_equal(twice._unprojected.frequencies, estimate.frequencies)


def test_an_unknown_projection_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidValueError, match="one of 'none', 'simplex', 'norm_sub'"):
        noisy_estimate().project("softmax")


def test_projected_frequencies_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        noisy_estimate().project("simplex").frequencies[0] = 1.0
