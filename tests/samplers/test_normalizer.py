"""Normalisers lie within their bounds, whatever the score is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import Mixture, Normal, StandardNormal, Uniform, as_reference
from turnout.samplers.normalizer import LogNormalizer, log_normalizer

Floats = npt.NDArray[np.float64]


def smooth(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    frequency, phase, level = rng.uniform(0.5, 8.0), rng.uniform(0, 6), rng.uniform(0.2, 1.0)
    return lambda x: level * np.sin(frequency * x + phase)


def steps(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    edges, levels = np.sort(rng.normal(size=7)), rng.uniform(-1.0, 1.0, 8)
    return lambda x: levels[np.searchsorted(edges, x)]


def spikes(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    places, widths = rng.normal(size=3), 10.0 ** rng.uniform(-3.5, -1.0, 3)
    return lambda x: (np.abs(x[..., None] - places) < widths).any(axis=-1) * 2.0 - 1.0


#: The middles of cells of equal probability: a score is constant in all but a few, or smooth.
MIDDLES = stats.norm.ppf((np.arange(2**18) + 0.5) / 2**18)


def exact(score: Callable[[Floats], Floats], most: float) -> float:
    """The logarithm of the integral under N(0, 1), by a fine grid in probability."""
    return float(np.log(np.exp(np.clip(score(MIDDLES), -most, most)).mean()))


@pytest.mark.parametrize("kind", [smooth, steps, spikes], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("most", [0.01, 1.0])
def test_bounds_contain_the_integral(kind: Any, most: float) -> None:
    rng = np.random.default_rng(1)
    for case in range(6):
        score = kind(rng)
        found = log_normalizer(
            lambda points, score=score: score(points[:, 0]),
            StandardNormal(1),
            least=-most,
            most=most,
            points=2**14,
            seed=case,
        )
        truth = exact(score, most)
        assert found.low - 5e-5 <= truth <= found.high + 5e-5
        assert found.low <= found.value <= found.high
        assert found.error == max(found.high - found.value, found.value - found.low)
        assert abs(found.value - truth) <= found.error + 5e-5
        assert found.error < 0.05 * most + 1e-3


def test_smooth_integrals_are_known_to_many_digits() -> None:
    truth = math.log(
        integrate.quad(lambda x: math.exp(math.sin(3 * x)) * stats.norm.pdf(x), -9, 9)[0]
    )
    found = log_normalizer(
        lambda points: np.sin(3 * points[:, 0]), StandardNormal(1), least=-1, most=1, seed=1
    )
    assert found.value == pytest.approx(truth, abs=1e-5)
    assert found.error < 1e-3
    assert (found.points, found.confidence) == (2**17, 1.0 - 1e-9)


def test_two_dimensions_agree_with_quadrature() -> None:
    def score(points: Floats) -> Floats:
        return np.tanh(points[:, 0] * points[:, 1])

    truth = math.log(
        integrate.dblquad(
            lambda x, y: math.exp(math.tanh(x * y) - (x * x + y * y) / 2) / (2 * math.pi),
            -8,
            8,
            -8,
            8,
            epsabs=1e-7,
        )[0]
    )
    found = log_normalizer(score, StandardNormal(2), least=-1.0, most=1.0, seed=1)
    assert found.low <= truth <= found.high
    assert found.value == pytest.approx(truth, abs=1e-4)
    assert found.error < 2e-3
    # The same integral without cells: four words, as a mixture of two needs.
    pair = Mixture([StandardNormal(2), StandardNormal(2)])
    assert pair.words == 3
    plain = log_normalizer(score, pair, least=-1.0, most=1.0, seed=1)
    assert plain.low <= truth <= plain.high
    assert plain.error > found.error


def test_many_dimensions_agree_with_the_product() -> None:
    # exp of a sum of clipped coordinates factorises.
    one = integrate.quad(
        lambda x: math.exp(min(max(x, -0.2), 0.2)) * stats.norm.pdf(x), -9, 9, points=[-0.2, 0.2]
    )[0]
    found = log_normalizer(
        lambda points: np.clip(points, -0.2, 0.2).sum(axis=1),
        StandardNormal(5),
        least=-1.0,
        most=1.0,
        seed=2,
    )
    assert found.low <= 5 * math.log(one) <= found.high
    assert found.error < 0.02


def test_references_of_all_kinds() -> None:
    # The integral of exp(indicator of a half-line).
    for reference, share in [
        (Uniform(0.0, 4.0), 0.25),
        (Normal([1.0], [4.0]), 0.5),
        (Mixture([Uniform(0.0, 1.0), Uniform(1.0, 2.0)], [0.3, 0.7]), 0.3),
        (as_reference(stats.gamma(2.0), 1), stats.gamma(2.0).cdf(1.0)),
        (as_reference(stats.multivariate_t([1.0], [[1.0]], df=3), 1), 0.5),
    ]:
        found = log_normalizer(
            lambda points: (points[:, 0] < 1.0) * 1.0, reference, least=0.0, most=1.0, seed=3
        )
        assert found.low <= math.log(1.0 + share * (math.e - 1.0)) <= found.high
        assert found.error < 0.02


# The error bound


def failures(
    score: Callable[[Floats], Floats], truth: float, repeats: int, **parameters: Any
) -> tuple[int, float]:
    """How often the bounds miss, and the mean of their error."""
    missed, errors = 0, []
    for seed in range(repeats):
        found = log_normalizer(score, seed=seed, **parameters)
        missed += not found.low <= truth <= found.high
        errors.append(found.error)
    return missed, float(np.mean(errors))


@pytest.mark.parametrize("chance", [0.5, 0.02, 0.002])
@pytest.mark.parametrize("words", [1, 3])
def test_bounds_are_honest_at_a_low_confidence(chance: float, words: int) -> None:
    # The hardest scores are two-valued and random within every cell; few points.
    reference = Uniform(np.zeros(words), np.ones(words))
    scale = 1e9

    def score(points: Floats) -> Floats:
        return np.where((points[:, 0] * scale) % 1.0 < chance, 1.0, -1.0)

    truth = math.log(chance * math.e + (1.0 - chance) / math.e)
    missed, error = failures(
        score,
        truth,
        1500,
        reference=reference,
        least=-1.0,
        most=1.0,
        points=256,
        confidence=0.9,
    )
    # The stated failure is .1; more than that at ALPHA is a wrong bound.
    assert stats.binom.sf(missed - 1, 1500, 0.1) > 1e-6
    # Not empty: within a few of the standard errors of the mean.
    assert error < 0.8


def test_the_error_bound_is_what_the_inequality_says() -> None:
    # A second derivation, in the units of the values themselves: pairs, then Bernstein.
    def score(points: Floats) -> Floats:
        return np.cos(40.0 * points[:, 0])

    count, confidence = 512, 0.99
    seen: list[Floats] = []

    def noted(points: Floats) -> Floats:
        seen.append(score(points))
        return seen[-1]

    found = log_normalizer(
        noted,
        StandardNormal(1),
        least=-1.5,
        most=1.5,
        points=2 * count,
        confidence=confidence,
        seed=4,
    )
    one, other = np.exp(seen[0]), np.exp(seen[1])
    assert one.shape == other.shape == (count,)
    width = math.exp(1.5) - math.exp(-1.5)
    # Each of two events of the pairs' mean and one of the variance fails with a third at most.
    level = (1.0 - confidence) / 4.0
    # Lower tail: sum of D = (a - b)^2 / 2 >= sum of its means - sqrt(2 log(1/level) sum E D^2),
    # with E D^2 <= width^2 / 2 E D. Solve for the sum of the means.
    seen_sum = float(((one - other) ** 2).sum() / 2.0)
    shortfall = width**2 * math.log(1.0 / level)
    roots = np.roots([1.0, -(2.0 * seen_sum + shortfall), seen_sum**2])
    variance = max(roots.real)
    # Bernstein: level = exp(-t^2 / (2 (V + width t / 3))) where V is half of it: means of pairs.
    log_level = math.log(1.0 / level)
    t = max(np.roots([1.0, -2.0 * log_level * width / 3.0, -log_level * variance]).real)
    mean = float(np.mean([one, other]))
    assert found.value == pytest.approx(math.log(mean), rel=1e-12)
    assert found.high == pytest.approx(math.log(mean + t / count), rel=1e-9)
    assert found.low == pytest.approx(math.log(mean - t / count), rel=1e-9)


def test_bounds_shrink_with_points_and_grow_with_confidence() -> None:
    def error(points: int, confidence: float) -> float:
        return log_normalizer(
            lambda x: np.sin(x[:, 0]),
            StandardNormal(1),
            least=-1.0,
            most=1.0,
            points=points,
            confidence=confidence,
            seed=1,
        ).error

    assert error(2**16, 0.99) < error(2**12, 0.99) < error(2**8, 0.99)
    assert error(2**12, 0.9) < error(2**12, 0.99) < error(2**12, 1.0 - 1e-15)


def test_bounds_stay_within_the_range_of_the_score() -> None:
    for points in (2, 3, 10):
        found = log_normalizer(
            lambda x: np.where(x[:, 0] > 0, 2.0, -1.0),
            StandardNormal(1),
            least=-1.0,
            most=2.0,
            points=points,
            seed=1,
        )
        assert -1.0 <= found.low <= found.value <= found.high <= 2.0


def test_scores_outside_the_range_are_clipped_to_it() -> None:
    def score(points: Floats) -> Floats:
        table = np.array([math.nan, math.inf, -math.inf, 1e308, -5.0, 0.0, 9.0, -0.5])
        return table[np.minimum((points[:, 0] * 8).astype(int), 7)]

    clipped = np.array([-1.0, 2.0, -1.0, 2.0, -1.0, 0.0, 2.0, -0.5])
    found = log_normalizer(score, Uniform(0.0, 1.0), least=-1.0, most=2.0, points=2**14, seed=1)
    assert found.value == pytest.approx(math.log(np.exp(clipped).mean()), abs=1e-3)
    assert found.low <= math.log(np.exp(clipped).mean()) <= found.high


@pytest.mark.parametrize("level", [-300.0, 0.0, 700.0])
def test_constants_are_integrated_without_overflow(level: float) -> None:
    found = log_normalizer(
        lambda x: np.full(len(x), level), StandardNormal(1), least=level, most=level, seed=1
    )
    assert (found.value, found.low, found.high) == pytest.approx((level, level, level), abs=1e-11)


def test_seeds_make_points_reproducible() -> None:
    def integral(seed: int | None, reference: Any) -> LogNormalizer:
        return log_normalizer(
            lambda x: np.sin(x[:, 0]), reference, least=-1, most=1, points=100, seed=seed
        )

    for reference in (StandardNormal(1), StandardNormal(2), StandardNormal(4)):
        assert integral(1, reference) == integral(1, reference)
        assert integral(1, reference) != integral(2, reference)
        assert integral(None, reference) != integral(None, reference)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"least": 1.0, "most": 0.0}, "least and most must be finite and in order"),
        ({"least": -math.inf, "most": 0.0}, "least and most must be finite"),
        ({"least": 0.0, "most": math.inf}, "least and most must be finite"),
        ({"least": math.nan, "most": 0.0}, "least and most must be finite"),
        ({"points": 1}, "points must be an integer of at least 2"),
        ({"points": 100.0}, "points must be an integer"),
        ({"confidence": 1.0}, "confidence must be a level"),
        ({"confidence": 0.0}, "confidence must be a level"),
        ({"confidence": math.nan}, "confidence must be a level"),
        ({"least": "a"}, "least must be a real number"),
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": 1.5}, "seed must be an integer"),
    ],
)
def test_bad_arguments(parameters: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"least": -1.0, "most": 1.0, **parameters}
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        log_normalizer(lambda x: x[:, 0], StandardNormal(1), **arguments)
