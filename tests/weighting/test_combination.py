"""Combined estimates against simulation: mean, variance, coverage, and who is better."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError

EPSILONS = (0.2, 0.5, 1.0, 3.0)
SIZES = (300, 200, 100, 60)
FREQUENCIES = np.array([0.55, 0.3, 0.1, 0.05])
RUNS = 1500


def rates(kind: str, size: int) -> tn.Participation:
    if kind == "everyone":
        return tn.Everyone()
    if kind == "bernoulli":
        return tn.Bernoulli(0.6)
    return tn.Personalized(np.linspace(0.3, 1.0, size))


def frequency_groups(seed: int, kind: str, method: str) -> list[tn.FrequencyEstimate]:
    """Groups drawn from the population, each with an epsilon of its own."""
    generator = np.random.default_rng([seed, 1])
    made = []
    for place, (epsilon, size) in enumerate(zip(EPSILONS, SIZES, strict=True)):
        values = generator.choice(4, size=size, p=FREQUENCIES)
        oracle = tn.DirectEncoding(epsilon, 4)
        tally = oracle.collect(values, participation=rates(kind, size), seed=10 * seed + place)
        made.append(tally.estimate(method))
    return made


def mean_groups(seed: int, kind: str, mechanism: Any, method: str) -> list[tn.mean.MeanEstimate]:
    """Values with a normal law cut to the bounds, as in the paper's figure 5."""
    generator = np.random.default_rng([seed, 2])
    made = []
    for place, (epsilon, size) in enumerate(zip(EPSILONS, SIZES, strict=True)):
        values = np.clip(generator.normal(0.0, 1.0, size) / 3, -1.0, 1.0)
        taking_part = rates(kind, size)
        tally = mechanism(epsilon).collect(values, participation=taking_part, seed=9 * seed + place)
        made.append(tally.estimate(method))
    return made


@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson"])
@pytest.mark.parametrize("kind", ["everyone", "bernoulli", "personalized"])
def test_combined_frequencies(kind: str, method: str, statistical: ModuleType) -> None:
    found, plain, errors, single = [], [], [], []
    alone, together = np.zeros(4, dtype=int), 0
    for seed in range(RUNS):
        groups = frequency_groups(seed, kind, method)
        combined = tn.weighting.combine(groups)
        found.append(combined.frequencies)
        errors.append(combined.standard_errors**2)
        plain.append(tn.weighting.combine(groups, method="unweighted").frequencies)
        single.append(groups[-1].frequencies)
        alone += combined.interval(0.9).contains(FREQUENCIES)
        together += combined.interval(0.9, simultaneous="bonferroni").contains(FREQUENCIES).all()
    means = np.array(found)
    expected = np.array(errors).mean(axis=0)
    # Weights from estimated variances, and ratios, are a little biased.
    slack = 0.1 * np.sqrt(expected.max()) if kind == "personalized" else 0.0
    statistical.check_mean(means, FREQUENCIES, slack=slack)
    if kind == "personalized":
        assert (means.var(axis=0) <= expected * 1.1).all()
    else:
        statistical.check_variance(means, expected, slack=0.02)
        assert isinstance(combined.plan, tn.weighting.WeightedPlan)
    statistical.check_share(alone, RUNS, 0.88, 0.94)
    statistical.check_share(together, RUNS, 0.88, 0.97)
    weighted, unweighted, last = (
        float(((np.array(kept) - FREQUENCIES) ** 2).sum(axis=1).mean())
        for kept in (found, plain, single)
    )
    assert weighted < 0.5 * unweighted
    assert weighted < 0.95 * last


@pytest.mark.parametrize("mechanism", [tn.mean.Duchi, tn.mean.Piecewise])
@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson"])
@pytest.mark.parametrize("kind", ["everyone", "bernoulli", "personalized"])
def test_combined_means(kind: str, method: str, mechanism: Any, statistical: ModuleType) -> None:
    found, plain, errors = [], [], []
    covered = 0
    for seed in range(RUNS):
        groups = mean_groups(seed, kind, mechanism, method)
        combined = tn.weighting.combine(groups)
        found.append(combined.mean)
        errors.append(combined.standard_error**2)
        plain.append(tn.weighting.combine(groups, method="unweighted").mean)
        covered += combined.interval(0.9).contains(0.0)
    statistical.check_mean(found, 0.0)
    expected = float(np.mean(errors))
    statistical.check_variance(found, expected, slack=0.05)
    statistical.check_share(covered, RUNS, 0.88, 0.925)
    assert np.mean(np.square(found)) < 0.6 * np.mean(np.square(plain))


def test_the_variance_of_a_group_is_that_of_independent_reports(statistical: ModuleType) -> None:
    # Users drawn from the population make reports that are independent: r (1 - r) / (S d^2).
    oracle = tn.DirectEncoding(1.0, 4)
    p, q = oracle.support_probabilities
    estimate = oracle.simulate([400, 300, 200, 100]).estimate()
    combined = tn.weighting.combine([estimate])
    inside = np.clip(estimate.frequencies, 0.0, 1.0)
    r = q + (p - q) * inside
    np.testing.assert_allclose(
        combined.standard_errors**2, r * (1 - r) / (1000 * (p - q) ** 2), rtol=1e-12
    )
    np.testing.assert_array_equal(combined.frequencies, estimate.frequencies)
    sampled = oracle.simulate([4000, 3000, 2000, 1000], participation=tn.Bernoulli(0.1), seed=1)
    estimate = sampled.estimate()
    r = q + (p - q) * np.clip(estimate.frequencies, 0.0, 1.0)
    np.testing.assert_allclose(
        tn.weighting.combine([estimate]).standard_errors ** 2,
        r * (1 - r) / (sampled.received * (p - q) ** 2),
        rtol=1e-12,
    )


def test_weights_do_not_depend_on_the_reports() -> None:
    made = [
        tn.weighting.combine(frequency_groups(seed, "everyone", "hajek")).plan.weights
        for seed in range(3)
    ]
    assert made[0] == made[1] == made[2]
    p, q = np.array([tn.DirectEncoding(epsilon, 4).support_probabilities for epsilon in EPSILONS]).T
    r = q + (p - q) / 4
    precision = np.array(SIZES) * (p - q) ** 2 / (r * (1 - r))
    np.testing.assert_allclose(made[0], precision / precision.sum(), rtol=1e-9)
    for mechanism in (tn.mean.Duchi, tn.mean.Piecewise):
        made = [
            tn.weighting.combine(mean_groups(seed, "everyone", mechanism, "hajek")).plan.weights
            for seed in range(3)
        ]
        assert made[0] == made[1] == made[2]
    users = tn.weighting.combine(frequency_groups(0, "everyone", "hajek"), method="unweighted")
    np.testing.assert_allclose(users.plan.weights, np.array(SIZES) / sum(SIZES), rtol=1e-12)
    numerical = tn.weighting.combine(frequency_groups(0, "everyone", "hajek"), method="numerical")
    np.testing.assert_allclose(numerical.plan.weights, precision / precision.sum(), rtol=1e-5)


def test_other_groups() -> None:
    groups = frequency_groups(0, "everyone", "hajek")
    personal = frequency_groups(1, "personalized", "hajek")
    both = tn.weighting.combine([*groups, *personal])
    assert both.nodes == 2 * sum(SIZES)
    assert both.interval(0.9).method == "normal"
    nested = tn.weighting.combine([tn.weighting.combine(groups[:2]), *groups[2:]])
    assert nested.domain == groups[0].domain
    once = tn.weighting.combine(groups)
    np.testing.assert_allclose(nested.frequencies, once.frequencies, atol=0.05)
    given = tn.weighting.combine(groups, variances=[1.0, 1.0, 1.0, np.inf])
    np.testing.assert_allclose(given.plan.weights, [1 / 3, 1 / 3, 1 / 3, 0.0])
    assert given.frequencies == pytest.approx(
        sum(group.frequencies for group in groups[:3]) / 3, abs=1e-12
    )
    projected = tn.weighting.combine([group.project("simplex") for group in groups])
    np.testing.assert_array_equal(projected.frequencies, once.frequencies)
    assert once.project("simplex").frequencies.sum() == pytest.approx(1.0)
    assert len(once.to_records()) == 4
    # Several coordinates, and mechanisms of both kinds.
    values = np.tile([0.5, -0.25, 0.0], (500, 1))
    mixed = tn.weighting.combine(
        [
            tn.mean.Duchi(2.0, dimensions=3).collect(values, seed=1).estimate(),
            tn.mean.Piecewise(6.0, dimensions=3).collect(values, seed=2).estimate(),
        ]
    )
    assert mixed.interval(0.999999, simultaneous="sidak").contains(values[0]).all()
    assert mixed.plan.domain.dimensions == 3
    # A group with one report has a variance that nobody knows: no weight.
    lone = tn.mean.Piecewise(1.0).collect([0.5], seed=1).estimate()
    many = tn.mean.Piecewise(1.0).collect([0.5] * 100, seed=1).estimate()
    assert tn.weighting.combine([lone, many]).plan.weights == (0.0, 1.0)


def test_pictures_name_the_plan() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = tn.weighting.combine(frequency_groups(0, "everyone", "hajek")).plot()
    assert "WeightedPlan" in axes.get_title("left")


def test_bad_input() -> None:
    groups: list[Any] = list(frequency_groups(0, "everyone", "hajek"))
    mean = tn.mean.Duchi(1.0).collect([0.0] * 10, seed=1).estimate()
    with pytest.raises(InvalidValueError, match="at least one estimate"):
        tn.weighting.combine([])
    with pytest.raises(InvalidTypeError, match=r"estimates\[4\] must be a FrequencyEstimate"):
        tn.weighting.combine([*groups, mean])
    with pytest.raises(InvalidTypeError, match=r"estimates\[1\] must be a MeanEstimate"):
        tn.weighting.combine([mean, groups[0]])
    with pytest.raises(InvalidTypeError, match="must be"):
        tn.weighting.combine([1.0, 2.0])
    with pytest.raises(InvalidTypeError, match="a sequence of estimates"):
        tn.weighting.combine(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="method must be one of"):
        tn.weighting.combine(groups, method="best")
    for variances in ([1.0], [1.0, 1.0, 1.0, -1.0], [np.inf] * 4):
        with pytest.raises(InvalidValueError, match="variances"):
            tn.weighting.combine(groups, variances=variances)
    other = tn.DirectEncoding(1.0, 5).simulate([1] * 5, seed=1).estimate()
    with pytest.raises(InvalidValueError, match=r"estimates\[4\] must be of the domain"):
        tn.weighting.combine([*groups, other])
    wide = tn.mean.Duchi(1.0, (0.0, 1.0)).collect([0.0] * 10, seed=1).estimate()
    with pytest.raises(InvalidValueError, match=r"estimates\[1\] must have the bounds"):
        tn.weighting.combine([mean, wide])
    biased = tn.DirectEncoding(1.0, 4).simulate([5] * 4, participation=tn.Bernoulli(0.5), seed=1)
    with pytest.raises(EstimatorError, match=r"estimates\[0\] is biased"):
        tn.weighting.combine([biased.estimate("c"), *groups])
