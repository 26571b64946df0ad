"""The best participation: against a numerical optimiser, its conditions, and simulated data."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.models import ScoreMoments, personal_support_model
from turnout.planning import ParticipationPlan
from turnout.planning.laws import ReportLaw
from turnout.planning.participation import estimate_mixed, optimal_participation

FLOOR = tn.Personalized.minimum


def node_weight(epsilon: float, size: int) -> float:
    """A by its formula, of direct encoding."""
    q = 1 / (math.exp(epsilon) + size - 1)
    p = math.exp(epsilon) * q
    return (p * (1 - 2 * q) + q**2 + (size - 1) * q * (1 - q)) / (p - q) ** 2


def optimality_gap(plan: ParticipationPlan) -> float:
    """Measure how far the Karush-Kuhn-Tucker conditions are from holding, relatively.

    The problem is convex, so they are sufficient. With the multiplier ``m`` of the budget:
    ``A_j / pi_j^2 = m cost_j`` where the probability is free, at least that where it is 1, at
    most that where it is the smallest one; and the budget is spent unless ``m`` is 0.
    """
    pi = plan.probabilities
    if plan.multiplier == 0.0:
        return float(np.max(1.0 - pi))
    ratio = plan.weights / (pi * pi) / (plan.multiplier * plan.costs)
    # Rounded probabilities may be next to a bound.
    low = pi <= FLOOR * (1.0 + 1e-12)
    high = pi >= 1.0 - 1e-12
    violation = np.where(
        high, np.maximum(1.0 - ratio, 0.0), np.where(low, np.maximum(ratio - 1.0, 0.0), 0.0)
    )
    violation = np.where(high | low, violation, np.abs(ratio - 1.0))
    slack = abs(plan.budget - plan._expected_cost) / plan.budget
    return max(float(violation.max()), slack)


def problem(seed: int, nodes: int) -> tuple[Any, Any, float]:
    generator = np.random.default_rng(seed)
    epsilons = generator.choice([0.3, 0.7, 1.0, 2.0, 4.0], nodes)
    costs = generator.lognormal(0.0, 1.0, nodes)
    return epsilons, costs, float(costs.sum() * generator.uniform(0.02, 0.98))


@pytest.mark.parametrize("seed", range(12))
def test_a_numerical_optimiser_finds_the_same(seed: int) -> None:
    epsilons, costs, budget = problem(seed, 8)
    plan = optimal_participation(epsilons, costs, budget, domain_size=6)
    weights = np.array([node_weight(epsilon, 6) for epsilon in epsilons])
    scale = weights.sum()
    found = optimize.minimize(
        lambda pi: (weights / pi).sum() / scale,
        np.full(8, budget / costs.sum()),
        jac=lambda pi: -weights / pi**2 / scale,
        bounds=[(1e-6, 1.0)] * 8,
        constraints={
            "type": "ineq", "fun": lambda pi: budget - costs @ pi, "jac": lambda _: -costs,
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 2000},
    )  # fmt: skip
    assert found.status in (0, 8)  # 8: as far as rounding lets it go
    # Where the optimiser overspends, all probabilities are brought back to the budget together.
    pi = found.x * min(budget / (costs @ found.x), 1.0)
    variance = (weights / pi).sum() - 8
    np.testing.assert_allclose(plan.probabilities, pi, rtol=1e-4)
    assert plan.variance == pytest.approx(variance, rel=1e-7)
    assert plan.variance <= variance * (1 + 1e-12)


@pytest.mark.parametrize("share", [1e-9, 1e-4, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("nodes", [2, 50, 20_000])
def test_the_conditions_of_the_optimum_hold(nodes: int, share: float) -> None:
    epsilons, costs, _ = problem(nodes, nodes)
    budget = float(costs.sum() * share)
    plan = optimal_participation(epsilons, costs, budget, domain_size=30)
    pi = plan.probabilities
    assert optimality_gap(plan) < 1e-12
    assert plan._expected_cost <= budget
    assert pi.min() >= FLOOR
    assert pi.max() <= 1.0
    # By hand, for the nodes that are free.
    weights = np.array([node_weight(epsilon, 30) for epsilon in epsilons])
    np.testing.assert_allclose(plan.weights, weights, rtol=1e-9)
    free = (pi > FLOOR * 1.001) & (pi < 0.999)
    ratio = weights[free] / (pi[free] ** 2 * costs[free])
    np.testing.assert_allclose(ratio, plan.multiplier, rtol=1e-9)
    capped = pi == 1.0
    assert np.all(weights[capped] / costs[capped] >= plan.multiplier * (1 - 1e-9))
    assert plan.gain >= 1 - 1e-12


def test_other_probabilities_do_not_meet_the_conditions() -> None:
    epsilons, costs, budget = problem(3, 30)
    plan = optimal_participation(epsilons, costs, budget, domain_size=5)
    generator = np.random.default_rng(4)
    for _ in range(20):
        moved = plan.probabilities * np.exp(generator.normal(0.0, 0.02, 30))
        moved = np.clip(moved, FLOOR, 1.0)
        while costs @ moved > budget:
            moved = moved * 0.999
        other = dataclasses.replace(plan, probabilities=moved)
        assert optimality_gap(other) > 1e-3
        assert other.variance > plan.variance
    # Feasible, but another rule: proportional to the square root of the costs.
    uniform = dataclasses.replace(plan, probabilities=np.full(30, plan.uniform_rate))
    assert optimality_gap(uniform) > 0.1
    assert uniform.variance == pytest.approx(plan.gain * plan.variance, rel=1e-12)


def test_a_budget_for_all_takes_all() -> None:
    costs = [1.0, 2.0, 3.0]
    for budget in (6.0, 1e9):
        plan = optimal_participation(1.0, costs, budget, domain_size=4)
        assert plan.probabilities.tolist() == [1.0, 1.0, 1.0]
        assert (plan.multiplier, optimality_gap(plan), plan.gain) == (0.0, 0.0, 1.0)
        assert plan._expected_cost == 6.0
    almost = optimal_participation(1.0, costs, math.nextafter(6.0, 0.0), domain_size=4)
    assert almost._expected_cost < 6.0
    assert almost.probabilities.min() > 1 - 1e-12


def test_the_multiplier_is_the_price_of_budget() -> None:
    epsilons, costs, budget = problem(5, 40)
    plan = optimal_participation(epsilons, costs, budget, domain_size=5)
    more = optimal_participation(epsilons, costs, budget * (1 + 1e-6), domain_size=5)
    assert (plan.variance - more.variance) / (budget * 1e-6) == pytest.approx(
        plan.multiplier, rel=1e-4
    )


def test_the_variance_is_the_trace_of_horvitz_thompson(plain: Any) -> None:
    generator = np.random.default_rng(6)
    values = generator.integers(0, 7, 200)
    pi = generator.uniform(0.05, 1.0, 200)
    for oracle in (tn.DirectEncoding(1.7, 7), plain(1.7, 7)):
        exact = tn.estimator_variance(
            oracle, tn.Personalized(pi), method="horvitz_thompson", values=values
        )
        total = ReportLaw.of(oracle).total(7)
        assert (total / pi).sum() - 200 == pytest.approx(exact.sum(), rel=1e-10)
    assert ReportLaw.of(tn.DirectEncoding(1.7, 7)).total(7) == pytest.approx(node_weight(1.7, 7))


def mixed_population() -> tuple[Any, Any, Any]:
    """Cautious nodes with rare answers, open ones with common ones, and cheap and dear reports."""
    epsilons = np.repeat([0.8, 3.0], [1200, 800])
    values = np.concatenate([np.repeat([2, 3], 600), np.repeat([0, 1, 2], [500, 200, 100])])
    costs = np.tile([1.0, 6.0], 1000)
    return epsilons, values, costs


def test_it_beats_a_common_rate_on_simulated_data(statistical: ModuleType) -> None:
    epsilons, values, costs = mixed_population()
    truth = np.bincount(values, minlength=4)
    plan = optimal_participation(epsilons, costs, 1500.0, domain_size=4)
    uniform = dataclasses.replace(plan, probabilities=np.full(2000, plan.uniform_rate))
    assert uniform._expected_cost == pytest.approx(1500.0)
    runs = 1500
    traces = {}
    for name, each in (("best", plan), ("uniform", uniform)):
        found = np.array([
            estimate_mixed(each.collect(values, seed=10**6 + run)).counts for run in range(runs)
        ])  # fmt: skip
        exact = sum(
            tn.estimator_variance(
                oracle,
                tn.Personalized(each.probabilities[each.groups == position]),
                method="horvitz_thompson",
                values=values[each.groups == position],
            )
            for position, oracle in enumerate(each.oracles)
        )
        assert np.sum(exact) == pytest.approx(each.variance, rel=1e-10)
        statistical.check_mean(found, truth)
        statistical.check_variance(found, exact)
        traces[name] = found.var(axis=0).sum()
    assert plan.gain > 1.3
    assert traces["uniform"] / traces["best"] == pytest.approx(plan.gain, rel=0.1)


def test_sums_of_groups_have_intervals_that_cover(statistical: ModuleType) -> None:
    epsilons, values, costs = mixed_population()
    truth = np.bincount(values, minlength=4) / 2000
    plan = optimal_participation(epsilons, costs, 3000.0, domain_size=4)
    runs = 2000
    for method in ("horvitz_thompson", "hajek"):
        hits = np.zeros(4, dtype=np.int64)
        for run in range(runs):
            estimate = estimate_mixed(plan.collect(values, seed=run), method)
            hits += estimate.interval(0.9).contains(truth)
        statistical.check_share(hits, runs, 0.88, 0.93)
    assert estimate.nodes == 2000
    assert estimate.plan.epsilons == (0.8, 3.0)
    assert estimate.domain == tn.Domain.from_integers(4)


def test_answers_with_labels_are_collected_by_their_nodes_epsilon() -> None:
    domain = tn.Domain(["no", "yes"])
    plan = optimal_participation([5.0, 1.0] * 500, 1.0, 1e9, domain_size=domain)
    low, high = plan.collect(["yes", "no"] * 500, seed=1)
    assert (low.oracle.epsilon, high.oracle.epsilon) == (1.0, 5.0)
    assert low.nodes == high.nodes == 500
    assert high.support[1] > 480
    again = plan.collect(["yes", "no"] * 500, seed=1)
    assert [tally.support.tolist() for tally in again] == [
        low.support.tolist(), high.support.tolist(),
    ]  # fmt: skip


# The sampling paper's own objective: Var*(T) at a fixed sum of the probabilities.


def paper_objective(pi: Any, p: float, q: float) -> float:
    """Theorem 3.7's Var* of T: the variance where the answer is rare, f -> 0."""
    n = len(pi)
    return float(n**2 * (pi * q * (1 - pi * q)).sum() / ((p - q) * pi.sum()) ** 2)


def test_the_papers_stationary_point_is_the_maximum() -> None:
    p, q = tn.DirectEncoding(1.0, 5).support_probabilities
    nodes, mean = 6, 0.4
    equal = np.full(nodes, mean)
    model = personal_support_model(nodes, nodes * mean, nodes * mean**2, ScoreMoments.pure(p, q))
    assert model.v0 * (nodes / model.b) ** 2 == pytest.approx(paper_objective(equal, p, q))
    generator = np.random.default_rng(7)
    best = paper_objective(equal, p, q)
    for _ in range(200):
        direction = generator.normal(size=nodes)
        direction -= direction.mean()
        direction /= np.abs(direction).max()
        # Stationary along every direction that keeps the sum, and concave everywhere.
        step = 1e-4 * direction
        both = [paper_objective(equal + sign * step, p, q) for sign in (-1, 1)]
        assert abs(both[1] - both[0]) < 1e-9 * best
        assert both[0] < best > both[1]
        one, two = (equal + reach * direction for reach in generator.uniform(-0.39, 0.39, 2))
        middle = paper_objective((one + two) / 2, p, q)
        assert middle >= (paper_objective(one, p, q) + paper_objective(two, p, q)) / 2
    # A linear term is fixed by the sum, and minus q^2 times the sum of squares is what is left: the
    # minimum is a corner, some nodes always and the others never, whatever their answers.
    corner = np.array([1.0, 1.0, 0.4, 0.0, 0.0, 0.0])
    assert paper_objective(corner, p, q) < best
    assert min(
        paper_objective(point, p, q)
        for point in generator.dirichlet(np.full(nodes, 0.2), 4000) * nodes * mean
        if point.max() <= 1.0
    ) >= paper_objective(corner, p, q)


def test_the_corner_estimates_nothing_of_nodes_that_never_report() -> None:
    # What the paper's minimum costs: with Horvitz-Thompson, which is right for all data.
    low = optimal_participation([1.0] * 6, 1.0, 2.4, domain_size=5)
    np.testing.assert_allclose(low.probabilities, 0.4, rtol=1e-12)
    corner = np.array([1.0, 1.0, 0.4 - 3 * FLOOR, FLOOR, FLOOR, FLOOR])
    assert dataclasses.replace(low, probabilities=corner).variance > 1e8 * low.variance


def test_a_million_nodes() -> None:
    epsilons, costs, _ = problem(9, 1_000_000)
    plan = optimal_participation(epsilons, costs, 0.3 * costs.sum(), domain_size=50)
    assert optimality_gap(plan) < 1e-9
    assert plan._expected_cost <= plan.budget
    assert plan.nodes == 1_000_000
    assert isinstance(plan, ParticipationPlan)
    assert "1000000 nodes, 5 epsilons" in repr(plan)
    assert plan.participation == tn.Personalized(plan.probabilities)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilons": [1.0, 2.0]}, InvalidValueError, "must have the same length, got 2 and 3"),
        ({"epsilons": 1.0, "costs": 2.0}, InvalidValueError, "epsilons or costs must hold"),
        ({"epsilons": []}, InvalidValueError, "epsilons must hold a number for each node"),
        (
            {"epsilons": [1.0, 0.0, 1.0]},
            InvalidValueError,
            r"epsilons\[1\] must be finite",
        ),
        ({"epsilons": ["1", "2", "3"]}, InvalidTypeError, "epsilons must"),
        ({"epsilons": [[1.0] * 3]}, InvalidTypeError, "epsilons must be one-dimensional"),
        ({"costs": [1.0, -1.0, 1.0]}, InvalidValueError, r"costs\[1\] must be finite and above 0"),
        ({"costs": [1.0, math.inf, 1.0]}, InvalidValueError, r"costs\[1\] must be finite"),
        ({"costs": 0.0}, InvalidValueError, r"costs\[0\] must be finite and above 0"),
        ({"costs": None}, InvalidTypeError, "costs must be a real number"),
        ({"budget": 0.0}, InvalidValueError, "budget must be a finite number above 0"),
        ({"budget": math.nan}, InvalidValueError, "budget must be a finite"),
        ({"budget": 1e-12}, InvalidValueError, r"budget must be at least .* 2\^-30 cost"),
        ({"domain_size": 1}, InvalidValueError, "domain_size must be"),
        ({"oracle": 3}, InvalidTypeError, "oracle must be 'auto', the name of an oracle"),
        ({"oracle": [tn.DirectEncoding]}, InvalidTypeError, "oracle must be 'auto', the name of"),
        ({"oracle": tn.Memoized}, InvalidTypeError, "oracle must make an oracle from an epsilon"),
        ({"oracle": "rappor"}, InvalidValueError, "must be one of"),
        ({"epsilons": 100.0}, InvalidValueError, "epsilon must"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {
        "epsilons": [1.0, 2.0, 3.0], "costs": [1.0, 1.0, 2.0], "budget": 2.0, "domain_size": 4,
        **arguments,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        optimal_participation(
            given.pop("epsilons"), given.pop("costs"), given.pop("budget"), **given
        )


def test_too_many_epsilons_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at most 10,000 different values, got 10,001"):
        optimal_participation(np.linspace(1, 2, 10_001), 1.0, 5.0, domain_size=4)


def test_what_cannot_be_collected_or_added_is_refused() -> None:
    plan = optimal_participation([1.0, 2.0], 1.0, 1.0, domain_size=4)
    with pytest.raises(InvalidValueError, match="one answer for each of the 2 nodes, got 3"):
        plan.collect([0, 1, 2])
    with pytest.raises(InvalidValueError, match="seed must"):
        plan.collect([0, 1], seed=-1)
    tally = tn.DirectEncoding(1.0, 4).simulate([5, 5, 5, 5])
    with pytest.raises(InvalidValueError, match="tallies must hold a tally"):
        estimate_mixed([])
    with pytest.raises(InvalidTypeError, match="tallies must be an iterable"):
        estimate_mixed(tally)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"tallies\[1\] must be a Tally"):
        estimate_mixed([tally, 3])  # type: ignore[list-item]
    with pytest.raises(InvalidValueError, match=r"tallies\[1\] must be of the domain of tallies"):
        estimate_mixed([tally, tn.DirectEncoding(1.0, 3).simulate([5, 5, 5])])
    rate = tn.Bernoulli(0.5)
    sampled = tn.DirectEncoding(1.0, 4).simulate([500] * 4, participation=rate)
    with pytest.raises(InvalidValueError, match="method must be unbiased"):
        estimate_mixed([sampled], "c")
