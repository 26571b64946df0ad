"""Estimates of means against simulation and exact variances."""

from __future__ import annotations

import pickle
from types import ModuleType

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums
from turnout.errors import EstimatorError

NODES = 400
RUNS = 3000

MECHANISMS = {
    "duchi": tn.mean.Duchi(1.0, (0.0, 10.0)),
    "duchi, sharp": tn.mean.Duchi(4.0, (0.0, 10.0)),
    "duchi, 2": tn.mean.Duchi(2.0, (0.0, 10.0), 2),
    "piecewise": tn.mean.Piecewise(1.0, (0.0, 10.0)),
    "piecewise, sharp": tn.mean.Piecewise(8.0, (0.0, 10.0)),
    "piecewise, 2 of 3": tn.mean.Piecewise(6.0, (0.0, 10.0), 3),
}


def held(mechanism: tn.mean.MeanMechanism) -> np.ndarray:
    """Values that are neither centred nor alike, and correlated with the personal rates."""
    generator = np.random.default_rng(5)
    values = 10 * generator.beta(4.0, 2.0, (NODES, mechanism.dimensions))
    values[:, 0].sort()
    return values[:, 0] if mechanism.dimensions == 1 else values


def participation(kind: str) -> tn.Participation:
    if kind == "everyone":
        return tn.Everyone()
    if kind == "bernoulli":
        return tn.Bernoulli(0.4)
    return tn.Personalized(np.linspace(0.2, 1.0, NODES))


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], list[tn.mean.MeanTally]]:
    made = {}
    for name, mechanism in MECHANISMS.items():
        values = held(mechanism)
        for kind in ("everyone", "bernoulli", "personalized"):
            taking_part = participation(kind)
            made[name, kind] = [
                mechanism.collect(values, participation=taking_part, seed=seed)
                for seed in range(RUNS)
            ]
    return made


@pytest.mark.parametrize("kind", ["everyone", "bernoulli", "personalized"])
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson"])
def test_estimates_have_their_mean_and_variance_and_intervals_cover(
    runs: dict[tuple[str, str], list[tn.mean.MeanTally]],
    name: str,
    kind: str,
    method: str,
    statistical: ModuleType,
) -> None:
    mechanism, taking_part = MECHANISMS[name], participation(kind)
    values = held(mechanism)
    truth = np.atleast_1d(values.mean(axis=0))
    estimates = [tally.estimate(method) for tally in runs[name, kind]]
    means = np.array([np.atleast_1d(estimate.mean) for estimate in estimates])
    exact = np.atleast_1d(
        tn.estimator_variance(mechanism, taking_part, values=values, method=method)
    )
    # The ratio estimator is biased by the order of its variance over its scale.
    ratio = method == "hajek" and kind == "personalized"
    statistical.check_mean(means, truth, slack=0.02 * np.sqrt(exact.max()) if ratio else 0.0)
    statistical.check_variance(means, exact, slack=0.05 if ratio else 0.0)
    # Standard errors: unbiased where the reports tell the spread of the values, never too small.
    errors = np.array([np.atleast_1d(estimate.standard_error) for estimate in estimates])
    mean_square = (errors**2).mean(axis=0)
    assert (mean_square >= exact * (0.95 if ratio else 0.98)).all()
    spread = np.atleast_1d(values.var(axis=0))
    extra = spread / NODES if mechanism.name == "duchi" else 0.0
    assert (mean_square <= exact * 1.08 + extra).all()
    inside = np.zeros(mechanism.dimensions, dtype=int)
    for estimate in estimates:
        inside += np.atleast_1d(estimate.interval(0.9).contains(values.mean(axis=0)))
    statistical.check_share(inside, RUNS, 0.88, 0.99)
    if mechanism.name == "piecewise":
        statistical.check_share(inside, RUNS, 0.88, 0.925)


def test_values_at_a_bound_are_covered(statistical: ModuleType) -> None:
    # Next to no perturbation, and hardly a report on the other side.
    for mechanism in (tn.mean.Duchi(7.0), tn.mean.Piecewise(9.0)):
        values = np.full(300, 1.0)
        intervals = [
            mechanism.collect(values, seed=seed).estimate().interval(0.95) for seed in range(2000)
        ]
        covered = sum(interval.contains(1.0) for interval in intervals)
        statistical.check_share(covered, 2000, 0.93, 1.0)


def test_the_population_is_covered_too(statistical: ModuleType) -> None:
    generator = np.random.default_rng(2)
    for mechanism in (tn.mean.Duchi(5.0), tn.mean.Piecewise(6.0)):
        means, errors = [], []
        for seed in range(3000):
            values = generator.uniform(-1.0, 1.0, 200)
            estimate = mechanism.collect(values, seed=seed).estimate()
            means.append(estimate.mean)
            errors.append(estimate.population_standard_error)
        statistical.check_mean(means, 0.0)
        statistical.check_variance(means, float((np.array(errors) ** 2).mean()), slack=0.01)


def test_tallies_add_up_and_equal_those_of_reports() -> None:
    for mechanism in MECHANISMS.values():
        values = held(mechanism)
        for kind in ("everyone", "bernoulli", "personalized"):
            taking_part = participation(kind)
            reports = mechanism.randomize(values, participation=taking_part, seed=3)
            tally = mechanism.tally(reports)
            assert tally == mechanism.collect(values, participation=taking_part, seed=3)
            assert tally.received == len(reports)
            assert pickle.loads(pickle.dumps(tally)) == tally
            assert pickle.loads(pickle.dumps(reports)) == reports
            parts = [
                mechanism.tally(_part(reports, slice(0, 50), slice(0, 60), taking_part)),
                mechanism.tally(_part(reports, slice(50, None), slice(60, NODES), taking_part)),
            ]
            if kind != "everyone":
                assert sum(parts) == tally
                assert sum(reversed(parts)) == tally
                assert hash(sum(parts)) == hash(tally)


def _part(
    reports: tn.Reports, rows: slice, nodes: slice, participation: tn.Participation
) -> tn.Reports:
    """Some of the reports, as those of some of the nodes."""
    codes, design = reports.codes[rows], None
    if isinstance(participation, tn.Personalized):
        design = DesignSums.of(participation.probabilities[nodes])
    everyone = participation == tn.Everyone()
    return tn.Reports(
        reports.oracle,
        reports.participation,
        codes,
        len(codes) if everyone else nodes.stop - nodes.start,
        probabilities=None if reports.probabilities is None else reports.probabilities[rows],
        design=design,
    )


def test_estimates_without_reports() -> None:
    for mechanism in (tn.mean.Duchi(1.0), tn.mean.Piecewise(1.0)):
        empty = mechanism.tally(tn.Reports(mechanism, tn.Bernoulli(0.5), np.empty(0, np.uint8), 10))
        with pytest.raises(EstimatorError, match="nothing can be estimated: no reports"):
            empty.estimate()
        estimate = empty.estimate("horvitz_thompson")
        assert estimate.mean == 0.0
        assert 0.0 < float(estimate.standard_error) < np.inf
        silent = mechanism.collect([0.5] * 10, participation=tn.Personalized([0.5] * 10))
        personal = mechanism.tally(
            tn.Reports(
                mechanism,
                tn.Personalized([]),
                np.empty(0, np.uint8),
                10,
                probabilities=[],
                design=silent.design,
            )
        )
        for method in ("hajek", "horvitz_thompson"):
            with pytest.raises(EstimatorError):
                personal.estimate(method)
        with pytest.raises(EstimatorError, match="no nodes"):
            mechanism.collect(np.empty(0)).estimate()
    # One report says next to nothing: an infinite interval, not a narrow one.
    one = tn.mean.Piecewise(1.0)
    reports = tn.Reports(one, tn.Bernoulli(0.1), [7], 10)
    interval = one.tally(reports).estimate().interval(0.9)
    assert (interval.low, interval.high) == (-np.inf, np.inf)
    only = one.collect([0.5]).estimate()
    assert np.isfinite(only.standard_error)


def test_simultaneous_intervals_are_wider() -> None:
    estimate = tn.mean.Piecewise(6.0, dimensions=4).collect(np.zeros((1000, 4)), seed=1).estimate()
    alone, both = estimate.interval(0.9), estimate.interval(0.9, simultaneous="bonferroni")
    assert (both.width > alone.width).all()
    assert alone.contains(np.zeros(4)).shape == (4,)
    assert repr(estimate).startswith("MeanEstimate('hajek', ")
