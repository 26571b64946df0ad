"""The mollifier: what belongs to it, what is closest to a density, and its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import (
    Mixture,
    Normal,
    Projection,
    RelativeMollifier,
    StandardNormal,
    Uniform,
)
from turnout.samplers.adapters import log_density_of

Floats = npt.NDArray[np.float64]

ALPHA = 1e-6
GRID = np.linspace(-10.0, 10.0, 20_001)

#: Densities on a line, of which none is in the mollifier.
TARGETS: dict[str, Any] = {
    "near": stats.norm(0.5, 0.8),
    "far": stats.norm(4.0, 0.3),
    "narrow": stats.norm(0.3, 0.01),
    "heavy": stats.cauchy(),
    "half": stats.uniform(-1.0, 1.5),
    "skewed": stats.expon(),
}


def constant(ratio: Floats, base: Floats, epsilon: float) -> tuple[float, Floats]:
    """C by root finding on the grid, and the clipped density there: independent of the package."""
    low, high = -1e4, 100.0

    def clipped(log_c: float) -> Floats:
        return base * np.exp(np.clip(ratio - log_c, -epsilon / 2.0, epsilon / 2.0))

    for _ in range(60):
        middle = (low + high) / 2.0
        if integrate.simpson(clipped(middle), x=GRID) > 1.0:
            low = middle
        else:
            high = middle
    return low, clipped(low)


def divergence(target: Floats, log_density: Floats) -> float:
    """KL(P, Q) up to the entropy of P."""
    return float(integrate.simpson(np.where(target > 0.0, -target * log_density, 0.0), x=GRID))


# Projection


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_projections_agree_with_root_finding(name: str, epsilon: float) -> None:
    target = TARGETS[name]
    with np.errstate(divide="ignore"):
        ratio = target.logpdf(GRID) - stats.norm.logpdf(GRID)
    log_c, clipped = constant(ratio, stats.norm.pdf(GRID), epsilon)
    found = RelativeMollifier(StandardNormal(1), epsilon).project(target)
    log_density = found.log_density(GRID[:, None])
    # Where densities are steep, C is as uncertain as they are between two points of either grid.
    if name != "half" or epsilon < 3.0:
        assert found._log_constant == pytest.approx(log_c, abs=0.02, rel=1e-3)
    middle = np.abs(GRID) < 6.0
    error = np.abs(log_density - np.log(clipped))[middle]
    # Off only in the cells that contain a jump or by the error of C.
    assert np.quantile(error, 0.999) < 0.02
    assert integrate.simpson(np.exp(log_density), x=GRID) == pytest.approx(1.0, abs=2e-3)
    # Within the band everywhere, exactly.
    ratios = found._log_ratio(GRID[:, None])
    assert ratios.max() <= epsilon / 2.0
    assert ratios.min() >= -epsilon / 2.0
    assert found._log_limits == pytest.approx((-epsilon / 2.0, epsilon / 2.0), abs=1e-8)


@pytest.mark.parametrize("name", ["near", "far", "narrow", "skewed"])
def test_no_other_member_is_closer(name: str) -> None:
    epsilon, target = 2.0, TARGETS[name]
    with np.errstate(divide="ignore"):
        mass = target.pdf(GRID)
    base = stats.norm.pdf(GRID)
    projection = RelativeMollifier(StandardNormal(1), epsilon).project(target)
    log_density = projection.log_density(GRID[:, None])
    best = divergence(mass, log_density)
    rng = np.random.default_rng(1)
    for case in range(30):
        # Members: any bounded ratio, made to integrate to one by clipping anew.
        places, levels = np.sort(rng.normal(scale=2.0, size=6)), rng.uniform(-4.0, 4.0, 7)
        wave = levels[np.searchsorted(places, GRID)] + rng.normal() * np.sin(case * GRID)
        if case % 2:
            wave = projection._log_ratio(GRID[:, None]) + 0.1 * wave
        _, member = constant(wave, base, epsilon)
        assert np.abs(np.log(member / base)).max() <= epsilon / 2.0 + 1e-9
        assert divergence(mass, np.log(member)) > best - 2e-3
    # The conditions of optimality: P/Q is C inside, below C at the lower limit, above at the upper.
    with np.errstate(divide="ignore"):
        quotient = target.logpdf(GRID) - log_density
    ratios = projection._log_ratio(GRID[:, None])
    inside = np.abs(ratios) < epsilon / 2.0 - 1e-6
    assert np.abs(quotient[inside] - projection._log_constant).max(initial=0.0) < 1e-9
    assert (quotient[ratios < -epsilon / 2.0 + 1e-9] <= projection._log_constant + 1e-9).all()
    assert (quotient[ratios > epsilon / 2.0 - 1e-9] >= projection._log_constant - 1e-9).all()


def test_unnormalised_densities_have_the_same_projection() -> None:
    mollifier = RelativeMollifier(StandardNormal(1), 2.0)
    law = stats.norm(1.0, 0.3)
    one = mollifier.project(law)
    at = np.linspace(-4, 4, 101)[:, None]
    for factor in (-700.0, -3.0, 5.0, 1e6):
        other = mollifier.project(lambda x, factor=factor: law.logpdf(x[:, 0]) + factor)
        np.testing.assert_allclose(other.log_density(at), one.log_density(at), atol=1e-8)
        assert other._log_constant == pytest.approx(one._log_constant + factor, abs=1e-8)


def test_members_are_their_own_projection() -> None:
    def member(points: Floats) -> Floats:
        # An odd score under a symmetric reference, normalised by quadrature.
        return stats.norm.logpdf(points[:, 0]) + 0.4 * np.tanh(points[:, 0]) - level

    level = math.log(
        integrate.quad(lambda x: math.exp(0.4 * math.tanh(x)) * stats.norm.pdf(x), -9, 9)[0]
    )
    mollifier = RelativeMollifier(StandardNormal(1), 1.0)
    at = np.linspace(-5, 5, 101)[:, None]
    np.testing.assert_allclose(mollifier.project(member).log_density(at), member(at), atol=1e-4)
    reference = mollifier.project(StandardNormal(1))
    np.testing.assert_allclose(reference._log_ratio(at), 0.0, atol=1e-6)


def test_where_there_is_no_density_what_is_left_is_kept() -> None:
    # P is uniform on a tenth of the box: it may hold .1 e^(1/2) of the mass, the rest has .9 share.
    box = Uniform(0.0, 1.0)
    found = RelativeMollifier(box, 1.0).project(stats.uniform(0.2, 0.1))
    high = math.exp(0.5)
    inside, outside = np.array([[0.25]]), np.array([[0.5], [0.9]])
    assert found._log_ratio(inside)[0] == pytest.approx(0.5, abs=1e-6)
    left = math.log((1.0 - 0.1 * high) / 0.9)
    np.testing.assert_allclose(found._log_ratio(outside), left, atol=1e-3)
    # Where the lower limit alone leaves too much to P, it rises no further than it must.
    found = RelativeMollifier(box, 4.0).project(stats.uniform(0.0, 0.9))
    np.testing.assert_allclose(found._log_ratio(np.array([[0.95]])), -2.0, atol=1e-6)
    expected = math.log((1.0 - 0.1 * math.exp(-2.0)) / 0.9)
    np.testing.assert_allclose(found._log_ratio(np.array([[0.5]])), expected, atol=1e-3)
    # No density anywhere: the reference itself.
    for nothing in (-math.inf, math.nan, math.inf):
        found = RelativeMollifier(box, 1.0).project(lambda x, n=nothing: np.full(len(x), n))
        np.testing.assert_allclose(found._log_ratio(outside), 0.0, atol=1e-9)
        np.testing.assert_allclose(found.log_density(outside), 0.0, atol=1e-9)


def test_infinite_densities_stay_within_the_band() -> None:
    box = Uniform(0.0, 1.0)
    for share in (0.1, 0.5, 0.9):

        def spike(points: Floats, share: float = share) -> Floats:
            return np.where(points[:, 0] < share, math.inf, 0.0)

        found = RelativeMollifier(box, 2.0).project(spike)
        ratios = found._log_ratio(np.array([[share / 2.0], [(1.0 + share) / 2.0]]))
        assert np.isfinite(ratios).all()
        assert np.abs(ratios).max() <= 1.0
        total = share * math.exp(ratios[0]) + (1.0 - share) * math.exp(ratios[1])
        assert total == pytest.approx(1.0, abs=1e-3)
        # As much as the band allows goes where the density is infinite.
        expected = min(1.0, math.log((1.0 - (1.0 - share) * math.exp(-1.0)) / share))
        assert ratios[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 0.01, 1.0, 20.0, 42.0])
def test_projections_of_hostile_densities_are_in_the_band(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    table = np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 700.0, -700.0, 3.0])

    def hostile(points: Floats) -> Floats:
        return rng.choice(table, len(points))

    mollifier = RelativeMollifier(StandardNormal(2), epsilon)
    found = mollifier.project(hostile)
    at = rng.normal(size=(500, 2))
    ratios = found._log_ratio(at)
    assert (np.abs(ratios) <= epsilon / 2.0 + 1e-9).all()
    assert found.sample(2, proposals=16, seed=1).shape == (2, 2)


def test_projections_in_the_plane() -> None:
    reference = Normal([0.0, 0.0], [[1.0, 0.5], [0.5, 2.0]])
    law = stats.multivariate_normal([1.0, -1.0], [[0.2, 0.0], [0.0, 0.1]])
    projection = RelativeMollifier(reference, 3.0).project(law)
    normalizer = projection._log_normalizer(seed=1)
    assert normalizer.low - 1e-3 <= 0.0 <= normalizer.high + 1e-3
    assert abs(normalizer.value) < 2e-3
    axis = np.linspace(-7.0, 7.0, 701)
    plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    density = np.exp(projection.log_density(plane.reshape(-1, 2))).reshape(701, 701)
    assert integrate.simpson(integrate.simpson(density, x=axis), x=axis) == pytest.approx(
        1.0, abs=3e-3
    )


# Draws


def check_draws(projection: Projection, count: int, seed: int) -> float:
    density = np.exp(projection.log_density(GRID[:, None]))
    cdf = integrate.cumulative_simpson(density, x=GRID, initial=0.0)
    drawn = projection.sample(count, seed=seed)
    assert drawn.shape == (count, 1)
    return float(stats.kstest(drawn[:, 0], lambda x: np.interp(x, GRID, cdf)).pvalue)


@pytest.mark.parametrize(("name", "epsilon"), [("near", 1.0), ("far", 3.0)])
def test_draws_follow_the_projection(name: str, epsilon: float) -> None:
    projection = RelativeMollifier(StandardNormal(1), epsilon).project(TARGETS[name])
    assert check_draws(projection, 5000, seed=1) > ALPHA


def test_the_check_of_draws_tells_half_from_whole_epsilon() -> None:
    mollifiers = [RelativeMollifier(StandardNormal(1), epsilon) for epsilon in (2.0, 4.0)]
    stated, drawn = [mollifier.project(TARGETS["far"]) for mollifier in mollifiers]
    stated.sample = drawn.sample  # type: ignore[method-assign]
    assert check_draws(stated, 5000, seed=1) < ALPHA


# Certificates


def test_certificates_are_the_width_rounded_up() -> None:
    mollifier = RelativeMollifier(StandardNormal(1), 1.0)
    rng = np.random.default_rng(1)
    for _ in range(500):
        low, high = sorted(float(x) for x in rng.normal(size=2) * 10.0 ** rng.integers(-20, 20, 2))
        found = mollifier.certificate(low, high)
        width = Fraction(high) - Fraction(low)
        assert Fraction(found) >= width
        assert found == 0.0 or Fraction(math.nextafter(found, 0.0)) < width
    assert mollifier.certificate(0.25, 0.25) == 0.0


def test_certified_scores_give_members() -> None:
    # The certificate bounds |log Q/Q0| for every reference and every score of the range.
    rng = np.random.default_rng(2)
    for _ in range(100):
        low, high = sorted(rng.uniform(-2.0, 2.0, 2))
        masses = rng.dirichlet(np.full(5, 0.1))
        score = np.append(rng.uniform(low, high, 3), [low, high])
        ratio = score - math.log(float((masses * np.exp(score)).sum()))
        bound = RelativeMollifier(None, 1.0).certificate(float(low), float(high))
        assert np.abs(ratio).max() <= bound + 1e-12


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 42.0])
def test_admission_is_decided_at_half_epsilon(epsilon: float) -> None:
    mollifier = RelativeMollifier(None, epsilon)
    half = epsilon / 2.0
    assert mollifier._half_width == half
    assert mollifier._admits(0.0, half)
    assert mollifier._admits(-half / 2.0, half / 2.0)
    assert not mollifier._admits(0.0, math.nextafter(half, math.inf))
    assert not mollifier._admits(-half, half)
    # The width is above epsilon / 2 by less than a float: still not admitted.
    assert not mollifier._admits(-half * 1e-20, half)


# Arguments


def test_densities_in_all_their_forms() -> None:
    at = np.linspace(-2.0, 2.0, 9)[:, None]
    expected = stats.norm.logpdf(at[:, 0])
    mixture = Mixture([StandardNormal(1)])
    forms: list[Any] = [stats.norm(), StandardNormal(1), mixture, mixture.log_density]
    forms += [stats.norm.logpdf, lambda x: stats.norm.logpdf(x[:, 0])]
    for form in forms:
        found = log_density_of("density", form)(at)
        assert found.shape == (9,)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("value", [None, 3.0, "norm", StandardNormal, object(), [1.0]])
def test_what_is_no_density(value: Any) -> None:
    with pytest.raises(InvalidTypeError, match="density must be a function"):
        RelativeMollifier().project(value)


@pytest.mark.parametrize(
    "function",
    [lambda _: 0.0, lambda x: np.zeros((len(x), 2)), lambda x: np.zeros(len(x) - 1)],
)
def test_densities_of_another_shape(function: Callable[[Floats], Any]) -> None:
    projection = RelativeMollifier().project(function)
    with pytest.raises(InvalidValueError, match="density must give one log-density for each"):
        projection.log_density(np.zeros((3, 1)))
    with pytest.raises(InvalidValueError, match="density must give one log-density for each"):
        projection.sample(1)


def test_bad_arguments() -> None:
    for epsilon in (0.0, -1.0, math.nan, math.inf, 42.1):
        with pytest.raises(InvalidValueError, match="epsilon must be a finite number above 0"):
            RelativeMollifier(None, epsilon)
    with pytest.raises(InvalidTypeError, match="epsilon must be a real number"):
        RelativeMollifier(None, "1")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="dimensions must be an integer of at least 1"):
        RelativeMollifier(None, 1.0, 0)
    mollifier = RelativeMollifier(StandardNormal(2), 1.0)
    for least, most in [(1.0, 0.0), (-math.inf, 0.0), (math.nan, 1.0), (0.0, math.inf)]:
        with pytest.raises(InvalidValueError, match="least and most must be finite and in order"):
            mollifier.certificate(least, most)
    with pytest.raises(InvalidTypeError, match="most must be a real number"):
        mollifier._admits(0.0, None)  # type: ignore[arg-type]
    projection = mollifier.project(StandardNormal(2))
    for proposals in (1, 0, -5, 2**30 + 1, 2.5, True):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="proposals must be an int"):
            projection.sample(1, proposals=proposals)  # type: ignore[arg-type]
    for count in (0, -1, 1.5):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="n_samples must be an int"):
            projection.sample(count)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="seed must be an integer"):
        projection.sample(1, seed=-1)
    with pytest.raises(InvalidValueError, match="seed must be an integer"):
        mollifier.project(StandardNormal(2), seed=-1)


def test_what_it_looks_like() -> None:
    assert repr(RelativeMollifier(StandardNormal(2), 1.5)) == (
        "RelativeMollifier(StandardNormal(2), epsilon=1.5)"
    )
    assert RelativeMollifier(None, 1.0, 3).reference.dimensions == 3
    assert RelativeMollifier(stats.norm(), 1.0).reference.dimensions == 1
