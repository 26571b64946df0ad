"""Groups of every kind: distributed ones, combinations, small ones, ones that agree by chance."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidValueError

FREQUENCIES = np.array([0.6, 0.3, 0.1])


def drawn(generator: np.random.Generator, size: int) -> np.ndarray:
    return generator.choice(3, p=FREQUENCIES, size=size)


def test_distributed_and_local_groups(statistical: ModuleType) -> None:
    generator = np.random.default_rng(3)
    sampling = tn.distributed.SamplingAggregation(3, 200, rate=0.6, dummies=20)
    noisy = tn.distributed.NoisyAggregation(3, 300, epsilon=2.0)
    local = tn.DirectEncoding(3.0, 3)
    found, variances, runs = [], [], 2000
    alone, together = np.zeros(3, dtype=int), 0
    for seed in range(runs):
        groups = [
            sampling.run(drawn(generator, 200), seed=2 * seed).estimate,
            noisy.run(drawn(generator, 300), seed=2 * seed + 1).estimate,
            local.collect(
                drawn(generator, 400), participation=tn.Bernoulli(0.5), seed=seed
            ).estimate(),
        ]
        combined = tn.weighting.combine(groups)
        found.append(combined.frequencies)
        variances.append(combined.standard_errors**2)
        alone += combined.interval(0.9).contains(FREQUENCIES)
        together += combined.interval(0.9, simultaneous="sidak").contains(FREQUENCIES).all()
    statistical.check_mean(found, FREQUENCIES)
    statistical.check_variance(found, np.mean(variances, axis=0), slack=0.02)
    statistical.check_share(alone, runs, 0.885, 0.92)
    statistical.check_share(together, runs, 0.885, 0.94)
    assert combined.nodes == 900
    assert combined.domain == local.domain


def test_default_weights_are_those_of_the_variances_at_uniform_frequencies() -> None:
    # From the definitions: each user is drawn, then perturbed, alone; exact rationals.
    n = 60
    generator = np.random.default_rng(1)
    oracle = tn.DirectEncoding(1.0, 3)
    p, q = (Fraction(x) for x in oracle.support_probabilities)
    sampling = tn.distributed.SamplingAggregation(3, n, rate=0.5, dummies=20)
    added = sampling._contributors * sampling.dummies
    third = Fraction(1, 3)
    r = q + (p - q) * third
    exact = [
        r * (1 - r) / (n * (p - q) ** 2),
        # Kept and of this item: probability 1/6 for each user; the dummies' coins besides.
        (n * Fraction(1, 6) * Fraction(5, 6) + Fraction(added, 4)) / Fraction(n, 2) ** 2,
    ]
    weights = [float(1 / v / sum(1 / w for w in exact)) for v in exact]
    for _ in range(3):
        groups = [
            oracle.collect(drawn(generator, n)).estimate(),
            sampling.run(drawn(generator, n)).estimate,
        ]
        np.testing.assert_allclose(tn.weighting.combine(groups).plan.weights, weights, rtol=1e-9)


@pytest.mark.parametrize("mechanism", [tn.mean.Duchi, tn.mean.Piecewise])
def test_default_weights_of_means_are_those_of_uniform_values(mechanism: Any) -> None:
    bounds, generator = (2.0, 5.0), np.random.default_rng(1)
    kinds = [(0.5, 300, "hajek"), (2.0, 100, "hajek"), (4.0, 40, "horvitz_thompson")]
    middles = np.linspace(*bounds, 20_001)[:-1] + 3.0 / 40_000
    groups, precision = [], []
    for seed, (epsilon, size, method) in enumerate(kinds):
        made = mechanism(epsilon, bounds)
        tally = made.collect(
            generator.uniform(*bounds, size), participation=tn.Bernoulli(0.5), seed=seed
        )
        groups.append(tally.estimate(method))
        # A user drawn from the uniform law, perturbed: the variance of what its report says.
        one = made.variance(middles).mean() + middles.var()
        precision.append((tally.received if method == "hajek" else size / 2) / one)
    expected = np.array(precision) / sum(precision)
    np.testing.assert_allclose(tn.weighting.combine(groups).plan.weights, expected, rtol=1e-6)


def test_a_combination_of_one_has_the_law_of_its_group() -> None:
    generator = np.random.default_rng(2)
    values = generator.uniform(-1.0, 1.0, 300)
    for mechanism in (tn.mean.Duchi(3.0), tn.mean.Piecewise(3.0)):
        single = mechanism.collect(values, seed=1).estimate()
        once = tn.weighting.combine([single])
        assert once.mean == pytest.approx(single.mean, rel=1e-12)
        assert once.standard_error == pytest.approx(single.population_standard_error, rel=1e-12)
        twice = tn.weighting.combine([once])
        assert twice.standard_error == pytest.approx(once.standard_error, rel=1e-12)
        assert twice.interval(0.9).low == pytest.approx(once.interval(0.9).low, rel=1e-9)


@pytest.mark.parametrize("kind", ["everyone", "personalized"])
def test_nested_frequencies_count_the_draw_of_the_users_once(kind: str) -> None:
    generator = np.random.default_rng(2)
    taking_part: tn.Participation = tn.Everyone()
    if kind == "personalized":
        taking_part = tn.Personalized(np.linspace(0.8, 1.0, 500))
    groups = [
        tn.DirectEncoding(6.0, 3)
        .collect(drawn(generator, 500), participation=taking_part, seed=seed)
        .estimate()
        for seed in range(4)
    ]
    flat = tn.weighting.combine(groups)
    nested = tn.weighting.combine([flat])
    np.testing.assert_allclose(nested.frequencies, flat.frequencies, rtol=1e-12)
    np.testing.assert_allclose(nested.standard_errors, flat.standard_errors, rtol=1e-9)
    halves = [tn.weighting.combine(groups[:2]), tn.weighting.combine(groups[2:])]
    np.testing.assert_allclose(
        tn.weighting.combine(halves).standard_errors, flat.standard_errors, rtol=0.05
    )


@pytest.mark.parametrize("mechanism", [tn.mean.Duchi(8.0), tn.mean.Piecewise(8.0)], ids=repr)
def test_few_users_who_agree_do_not_outvote_many(mechanism: Any, statistical: ModuleType) -> None:
    generator = np.random.default_rng(4)
    found, covered, runs = [], 0, 1000
    for seed in range(runs):
        groups = []
        for place, size in enumerate((5, 10, 20, 1000)):
            values = np.where(generator.random(size) < 0.9, 1.0, -1.0)
            taking_part = tn.Personalized(np.linspace(0.5, 1.0, size))
            tally = mechanism.collect(values, participation=taking_part, seed=4 * seed + place)
            groups.append(tally.estimate())
        combined = tn.weighting.combine(groups)
        found.append(combined.mean)
        covered += combined.interval(0.95).contains(0.8)
    # The best possible has a standard deviation of 0.0196 or so.
    assert np.sqrt(np.mean((np.array(found) - 0.8) ** 2)) < 0.03
    statistical.check_share(covered, runs, 0.93, 1.0)


@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson"])
def test_few_answers_that_agree_do_not_outvote_many(method: str) -> None:
    few = tn.DirectEncoding(20.0, 3).collect(
        [1, 1, 1], participation=tn.Personalized([1.0] * 3), seed=1
    )
    many = tn.DirectEncoding(5.0, 3).collect(
        [0, 1] * 500, participation=tn.Personalized(np.linspace(0.9, 1.0, 1000)), seed=1
    )
    combined = tn.weighting.combine([few.estimate(method), many.estimate(method)])
    assert combined.plan.weights[0] < 0.05


@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson"])
def test_many_small_groups_are_not_biased(method: str, statistical: ModuleType) -> None:
    # Weights that follow the reports are biased by 1 / size in every group, however many.
    generator = np.random.default_rng(6)
    mechanism, size, runs = tn.mean.Piecewise(6.0), 20, 600
    taking_part = tn.Personalized(np.linspace(0.8, 1.0, size))
    found, covered = [], 0
    for seed in range(runs):
        groups = []
        for place in range(30):
            values = np.where(generator.random(size) < 0.75, 1.0, -1.0)
            tally = mechanism.collect(values, participation=taking_part, seed=30 * seed + place)
            groups.append(tally.estimate(method))
        combined = tn.weighting.combine(groups)
        found.append(combined.mean)
        covered += combined.interval(0.95).contains(0.5)
    # Hajek's ratios have a bias of their own, of less than a tenth of a standard error.
    statistical.check_mean(found, 0.5, slack=0.004)
    statistical.check_share(covered, runs, 0.93, 0.98)


@pytest.mark.parametrize("kind", ["mean", "frequency"])
def test_a_combination_weighs_what_its_groups_weigh(kind: str) -> None:
    groups: list[Any]
    if kind == "mean":
        groups = [
            tn.mean.Piecewise(epsilon).collect(values, seed=1).estimate()
            for epsilon, values in ((20.0, [1.0] * 3), (9.0, [0.5] * 40), (5.0, [0.0, 1.0] * 500))
        ]
    else:
        groups = [
            tn.DirectEncoding(epsilon, 3)
            .collect(values, participation=tn.Personalized([1.0] * len(values)), seed=1)
            .estimate("horvitz_thompson")
            for epsilon, values in ((20.0, [1] * 3), (9.0, [0, 1] * 20), (5.0, [0, 1] * 500))
        ]
    flat = tn.weighting.combine(groups).plan.weights
    inner = tn.weighting.combine(groups[:2])
    outer = tn.weighting.combine([inner, groups[2]]).plan.weights
    spread = [outer[0] * weight for weight in inner.plan.weights] + [outer[1]]
    np.testing.assert_allclose(spread, flat, rtol=1e-6)


def test_groups_of_one_user(statistical: ModuleType) -> None:
    generator = np.random.default_rng(5)
    oracle = tn.DirectEncoding(2.0, 3)
    covered, found, runs = np.zeros(3, dtype=int), [], 400
    for seed in range(runs):
        combined = tn.weighting.combine(
            [
                oracle.collect(drawn(generator, 1), seed=60 * seed + place).estimate()
                for place in range(60)
            ]
        )
        found.append(combined.frequencies)
        covered += combined.interval(0.9).contains(FREQUENCIES)
    assert combined.plan.weights == pytest.approx([1 / 60] * 60)
    statistical.check_mean(found, FREQUENCIES)
    statistical.check_share(covered, runs, 0.87, 0.95)


def test_groups_of_unknown_variance_have_no_weight() -> None:
    oracle = tn.DirectEncoding(3.0, 2)
    lone = oracle.collect([1], participation=tn.Personalized([1.0]), seed=1)
    for few, many in (
        (lone.estimate(), oracle.simulate([50, 50], seed=1).estimate()),
        (
            tn.mean.Piecewise(3.0).collect([0.5], seed=1).estimate(),
            tn.mean.Piecewise(3.0).collect([0.5] * 100, seed=1).estimate(),
        ),
    ):
        combined = tn.weighting.combine([few, many])
        assert combined.plan.weights == (0.0, 1.0)
        nested = tn.weighting.combine([combined, many])
        assert nested.plan.weights == pytest.approx((0.5, 0.5))
        assert np.isfinite(np.ravel(nested.interval(0.9).width)).all()
        with pytest.raises(InvalidValueError, match="no group has any information"):
            tn.weighting.combine([few])


def test_the_lemma_is_strict() -> None:
    # Lemma 3.4: equality with all weights one only where all variances are the same.
    variances, sizes = [1.0, 1.0, 1.0 + 2.0**-20], [3, 50, 7]

    def objective(weights: Any) -> Fraction:
        terms = [
            (n * Fraction(float(w)), Fraction(v))
            for n, w, v in zip(sizes, weights, variances, strict=True)
        ]
        noise = sum(a * a / n * v for (a, v), n in zip(terms, sizes, strict=True))
        return Fraction(noise) / Fraction(sum(a for a, _ in terms)) ** 2

    assert objective(tn.weighting.weights(variances, sizes)) < objective([1.0] * 3)


def test_different_domains_and_dimensions_are_refused() -> None:
    letters = tn.DirectEncoding(1.0, tn.Domain(["a", "b"])).collect(["a"] * 9, seed=1).estimate()
    codes = tn.DirectEncoding(1.0, 2).collect([0] * 9, seed=1).estimate()
    with pytest.raises(InvalidValueError, match=r"estimates\[1\] must be of the domain"):
        tn.weighting.combine([letters, codes])
    line = tn.mean.Duchi(1.0).collect([0.0] * 9, seed=1).estimate()
    plane = tn.mean.Duchi(1.0, dimensions=2).collect(np.zeros((9, 2)), seed=1).estimate()
    with pytest.raises(InvalidValueError, match=r"the bounds .*dimensions=1\) of"):
        tn.weighting.combine([line, plane])
