"""Promised errors beside measured ones, rates beside brute force, refusals."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import optimize, stats
from tests.frequency.oracles.pools import with_functions

import turnout as tn
from turnout.collecting.intervals import mean_inverse
from turnout.errors import InvalidValueError
from turnout.frequency.choice import registered
from turnout.planning import PlanProposal
from turnout.planning.laws import Population, ReportLaw, Spread
from turnout.planning.planner import plan

mpl.use("Agg")

SKEWED = [0.6, 0.2, 0.1, 0.04, 0.03, 0.02, 0.01]
DOMINANT = [0.95, 0.02, 0.02, 0.01]


def measured_errors(proposal: PlanProposal, counts: Any, runs: int) -> Any:
    """Simulate by NumPy, all runs at once: absolute errors, a row for each run."""
    generator = np.random.default_rng(1)
    counts = np.asarray(counts, dtype=np.int64)
    p, q = proposal.oracle.support_probabilities
    present = generator.binomial(counts, proposal.rate, size=(runs, counts.size))
    received = present.sum(axis=1)
    if proposal.oracle.name == "direct_encoding":
        kept = generator.binomial(present, p - q)
        rest = received - kept.sum(axis=1)
        support = kept + generator.multinomial(rest, np.full(counts.size, 1 / counts.size))
    else:
        support = generator.binomial(present, p)
        support += generator.binomial(received[:, None] - present, q)
    estimates = (support / received[:, None] - q) / (p - q)
    return np.abs(estimates - counts / counts.sum())


def check_promise(proposal: PlanProposal, counts: Any, runs: int = 20_000) -> None:
    """Fail unless the measured error is within 5 % of the promise.

    There are so many runs that a fifth of 5 % is more than a standard error: a promise that is
    right fails with probability below 1e-6, one that is wrong by 10 % passes with less.
    """
    errors = measured_errors(proposal, counts, runs)
    if proposal.target == "rmse":
        squares = (errors**2).mean(axis=1)
        measured = math.sqrt(squares.mean())
        deviation = squares.std() / math.sqrt(runs) / (2 * measured)
    elif proposal.target == "total_variation":
        distances = errors.sum(axis=1) / 2
        measured, deviation = distances.mean(), distances.std() / math.sqrt(runs)
    else:
        largest, level = errors.max(axis=1), proposal.confidence
        reach = math.sqrt(level * (1 - level) / runs)
        low, measured, high = np.quantile(largest, [level - reach, level, level + reach])
        deviation = (high - low) / 2
    assert deviation < 0.01 * proposal.error
    assert measured == pytest.approx(proposal.error, rel=0.05)
    if proposal.target == "rmse":
        # Exact: no more than the error of the simulation, at alpha = 1e-6.
        assert abs(measured - proposal.error) < 4.9 * deviation


@pytest.mark.parametrize("target", ["rmse", "max_error", "total_variation"])
@pytest.mark.parametrize(
    ("epsilon", "nodes", "frequencies", "share"),
    [
        (1.0, 20_000, [0.5] * 2, 0.1),
        (4.0, 20_000, [0.5] * 2, 0.3),
        (2.0, 30_000, [1 / 3] * 3, 0.2),
        (1.0, 100_000, [1 / 40] * 40, 0.05),
        (3.0, 20_000, SKEWED, 0.3),
        (6.0, 5_000, DOMINANT, 0.7),
        (5.0, 10_000, [0.5, 0.5, 0.0, 0.0], 0.5),
    ],
)
def test_what_is_promised_is_measured(
    plain: Any, *, target: str, epsilon: float, nodes: int, frequencies: list[float], share: float
) -> None:
    for oracle in (tn.DirectEncoding, plain):
        given: dict[str, Any] = {
            "epsilon": epsilon, "domain_size": len(frequencies), "nodes": nodes, "target": target,
            "frequencies": frequencies, "oracles": [oracle],
        }  # fmt: skip
        best = plan(**given)
        assert best.rate == 1.0
        assert isinstance(best.participation, tn.Everyone)
        value = best._error_at(share, best.oracle)
        proposal = plan(**given, value=value * (1 + 1e-9))
        assert proposal.rate == pytest.approx(share, rel=2e-6)
        assert proposal.error <= value * (1 + 1e-9)
        counts = np.rint(np.array(frequencies) * nodes).astype(np.int64)
        counts[0] += nodes - counts.sum()
        check_promise(proposal, counts)


def test_rare_answers_are_promised_within_five_percent() -> None:
    # Ten supporting reports an answer: normal laws alone would promise 8 % too little.
    proposal = plan(
        epsilon=1.0, domain_size=100, nodes=2000, target="max_error", budget=1000,
        oracles="direct_encoding",
    )  # fmt: skip
    check_promise(proposal, [20] * 100)
    spread = proposal._spread_at(0.5, proposal.oracle)
    tail = 0.5 * (1 - 0.95 ** (1 / 100))
    normal = -stats.norm.ppf(tail) * spread.rmse()
    assert proposal.error > 1.04 * normal
    sparse = plan(
        epsilon=1.0, domain_size=100, nodes=2000, target="max_error", budget=500,
        oracles="direct_encoding",
    )  # fmt: skip
    assert "Fewer than 10 reports" in sparse.explain()
    assert "Fewer than 10 reports" not in plan(epsilon=1.0, domain_size=9, nodes=9999).explain()


@pytest.mark.parametrize("rate", [0.003, 0.25, 1.0])
def test_variances_are_those_of_the_estimator(rate: float, plain: Any) -> None:
    counts = np.array([5000, 3000, 1500, 500, 0])
    who = tn.Bernoulli(rate)
    for oracle in (tn.DirectEncoding(1.3, 5), plain(1.3, 5)):
        exact = tn.estimator_variance(oracle, who, true_counts=counts) / 1e8
        population = Population.of(10_000, 5, counts / 10_000)
        spread = Spread(ReportLaw.of(oracle), population, mean_inverse(10_000, rate))
        np.testing.assert_allclose(spread.variances[::-1], exact, rtol=1e-9, atol=1e-18)
        assert spread.rmse() == pytest.approx(math.sqrt(exact.mean()), rel=1e-9)
        distance = np.sqrt(exact * 2 / math.pi).sum() / 2
        assert spread.total_variation() == pytest.approx(distance, rel=1e-9)


def test_the_largest_of_two_and_of_many_errors() -> None:
    # Two answers of direct encoding: one error and its opposite.
    law = ReportLaw.of(tn.DirectEncoding(1.0, 2))
    spread = Spread(law, Population.of(10**9, 2), 1e-8)
    one = stats.norm.ppf(0.975) * spread.rmse()
    assert spread.max_error(0.95) == pytest.approx(one, rel=1e-3)
    # Independent ones: the product.
    apart = ReportLaw(law.own, law.other, 0.0, 0.0, exclusive=False)
    spread = Spread(apart, Population.of(10**12, 200), 1e-8)
    alone = stats.norm.ppf(0.5 + 0.95 ** (1 / 200) / 2) * spread.rmse()
    assert spread.max_error(0.95) == pytest.approx(alone, rel=1e-3)


def test_frequencies_that_nearly_agree_are_put_together() -> None:
    generator = np.random.default_rng(2)
    raw = generator.pareto(1.5, 20_000) + 1e-3
    frequencies = raw / raw.sum()
    grouped = Population.of(10**9, 20_000, frequencies)
    values, weights = np.unique(frequencies, return_counts=True)
    single = Population(10**9, 20_000, values, weights.astype(float), grouped.squares)
    law = ReportLaw.of(tn.DirectEncoding(8.0, 20_000))
    assert grouped.values.size < 3000 < single.values.size
    for inverse in (2e-9, 1e-6):
        coarse, fine = (Spread(law, each, inverse) for each in (grouped, single))
        assert coarse.rmse() == fine.rmse()
        assert coarse.total_variation() == pytest.approx(fine.total_variation(), rel=1e-3)
        assert coarse.max_error(0.9) == pytest.approx(fine.max_error(0.9), rel=0.02)


def test_the_cheapest_is_chosen(several: list[Any]) -> None:
    given: dict[str, Any] = {
        "epsilon": 1.2, "domain_size": 100, "nodes": 10**6, "value": 0.01, "oracles": several
    }  # fmt: skip
    by_report = plan(**given)
    assert by_report.oracle.name == "test_plain"
    assert by_report.cost == by_report.expected_reports
    by_bit = plan(**given, cost_per_report=0.0, cost_per_bit=1.0)
    costs = {each.name: each.cost for each in by_bit.candidates if each.oracle is not None}
    assert by_bit.oracle.name == min(costs, key=lambda name: costs[name]) == "test_hashed"
    assert by_bit.cost == pytest.approx(by_bit.expected_bits) == pytest.approx(costs["test_hashed"])
    small = plan(**given, report_bits=8)
    assert small.oracle == tn.DirectEncoding(1.2, 100)
    # The rate is the smallest one: a little less misses the target.
    for proposal in (by_report, by_bit, small):
        assert proposal.error <= 0.01
        assert proposal._error_at(proposal.rate * (1 - 1e-5), proposal.oracle) > 0.01
    for each in by_report.candidates:
        if each.oracle is not None:
            brute = optimize.brentq(
                lambda rate, oracle=each.oracle: by_report._error_at(rate, oracle) - 0.01, 1e-4, 1.0
            )
            assert brute <= each.rate == pytest.approx(brute, rel=1e-5)


def test_a_budget_is_spent_on_the_best_oracle(several: list[Any]) -> None:
    given: dict[str, Any] = {
        "epsilon": 1.2, "domain_size": 100, "nodes": 10**6, "oracles": several
    }  # fmt: skip
    proposal = plan(**given, budget=50_000)
    assert (proposal.rate, proposal.cost) == (0.05, 50_000)
    assert proposal.oracle.name == "test_plain"
    bits = plan(**given, budget=50_000, cost_per_report=0.0, cost_per_bit=0.1)
    assert bits.oracle.name == "test_hashed"
    assert bits.cost <= 50_000 * (1 + 1e-12)
    assert bits.error == min(each.error for each in bits.candidates if each.remark is None)
    rich = plan(**given, budget=1e9)
    assert rich.rate == 1.0
    assert rich.error == plan(**given).error
    assert rich.cost == 10**6


def test_of_several_epsilons_the_cheapest_or_with_a_budget_the_smallest() -> None:
    given: dict[str, Any] = {"domain_size": 20, "nodes": 100_000, "value": 0.01}
    listed = plan(**given, epsilon=[0.5, 2.0, 1.0])
    assert listed.epsilon == 2.0
    assert {each.epsilon for each in listed.candidates} == {0.5, 1.0, 2.0}
    assert plan(**given, epsilon=(0.5, 2.0)).epsilon == 2.0
    budget = 20_000
    found = plan(**given, epsilon=(0.5, 4.0), budget=budget)
    assert found.error <= 0.01
    assert found.cost <= budget
    with pytest.raises(InvalidValueError, match="budget must be at least"):
        plan(**given, epsilon=found.epsilon * (1 - 2e-4), budget=budget)
    assert plan(**given, epsilon=[0.5, 1.0, 2.0, 4.0], budget=budget).epsilon == min(
        level for level in (0.5, 1.0, 2.0, 4.0) if level >= found.epsilon
    )
    assert [each.oracle for each in found.candidates].count(found.oracle) == 1
    levels = [each.epsilon for each in found._alternatives]
    assert set(levels[: levels.count(found.epsilon)]) == {found.epsilon}
    others = levels[levels.count(found.epsilon) :]
    assert others == sorted({each.epsilon for each in found.candidates} - {found.epsilon})


def test_a_stated_participation_has_the_oracle_of_smallest_error() -> None:
    given: dict[str, Any] = {"domain_size": 50, "nodes": 100_000, "participation": 0.2}
    found = plan(epsilon=1.0, **given)
    assert found.participation == tn.Bernoulli(0.2)
    assert found.collection_plan.participation == tn.Bernoulli(0.2)
    assert {each.rate for each in found.candidates} == {0.2}
    assert found.error == min(each.error for each in found.candidates)
    assert found.error == found._error_at(0.2, found.oracle)
    assert "The participation is the one that was stated." in found.explain()
    assert "Nothing smaller" not in found.explain()
    # A value that is kept to changes nothing: more reports than it needs make the error smaller.
    assert plan(epsilon=1.0, value=2 * found.error, **given).oracle == found.oracle
    for everyone in (1.0, 1, tn.Everyone()):
        all_of = plan(epsilon=1.0, **{**given, "participation": everyone})
        assert all_of.participation == tn.Everyone()
        assert all_of.error == plan(epsilon=1.0, domain_size=50, nodes=100_000).error


def test_of_a_range_a_stated_participation_takes_the_smallest_epsilon_that_is_enough() -> None:
    given: dict[str, Any] = {"domain_size": 50, "nodes": 100_000, "participation": 0.2}
    found = plan(epsilon=(0.2, 4.0), value=0.01, **given)
    assert found.error <= 0.01
    with pytest.raises(InvalidValueError, match="value must be at least"):
        plan(epsilon=found.epsilon * (1 - 2e-4), value=0.01, **given)
    assert plan(epsilon=[0.5, 4.0, 2.0], value=0.01, **given).epsilon == 2.0
    assert plan(epsilon=[0.5, 4.0, 2.0], **given).epsilon == 4.0


def test_few_nodes_and_easy_targets() -> None:
    easy = plan(epsilon=5.0, domain_size=2, nodes=10**6, value=0.5)
    assert easy.expected_reports == pytest.approx(25)
    assert plan(epsilon=5.0, domain_size=2, nodes=20, value=0.5).rate == 1.0
    one = plan(epsilon=1.0, domain_size=2, nodes=1)
    assert one.expected_reports == 1
    huge = plan(epsilon=1.0, domain_size=10, nodes=10**12, value=1e-4)
    assert huge.error <= 1e-4
    assert huge.rate < 0.01


def test_the_simulation_measures_what_numpy_measures(statistical: ModuleType) -> None:
    for target in ("rmse", "max_error", "total_variation"):
        proposal = plan(
            epsilon=3.0, domain_size=7, nodes=5000, target=target, frequencies=SKEWED, budget=2000
        )
        check = proposal.simulate(1500, seed=3)
        assert (check.target, check.promised, check.runs) == (target, proposal.error, 1500)
        assert check == proposal.simulate(1500, seed=3)
        assert check.standard_error < 0.03 * check.measured
        slack = 0.0 if target == "rmse" else 0.02
        allowed = statistical.quantile() * check.standard_error + slack * proposal.error
        assert abs(check.measured - proposal.error) < allowed
        assert check.ratio == check.measured / proposal.error
    counts = proposal._counts()
    assert counts.sum() == 5000
    assert counts.tolist() == sorted(round(5000 * f) for f in SKEWED)


def test_a_proposal_is_collected_as_planned() -> None:
    domain = tn.Domain(["no", "yes", "perhaps"])
    proposal = plan(epsilon=1.0, domain_size=domain, nodes=30_000, value=0.05)
    assert proposal.collection_plan == tn.Plan(proposal.oracle, proposal.participation)
    assert proposal.oracle.domain is domain
    tally = proposal.oracle.simulate([10_000] * 3, participation=proposal.participation, seed=1)
    assert tally.plan == proposal.collection_plan
    assert proposal.errors["rmse"] == proposal.error


def test_the_table_and_the_words(several: list[Any]) -> None:
    proposal = plan(epsilon=1.2, domain_size=100, nodes=10**6, value=0.01, oracles=several)
    rows = proposal.to_records()
    assert [row["name"] for row in rows] == [each.name for each in proposal._alternatives]
    assert (rows[0]["name"], rows[0]["remark"]) == ("test_plain", None)
    assert rows[-1]["name"] == "test_fussy"
    assert "domain must have two answers" in rows[-1]["remark"]
    words = proposal.explain()
    assert f"{100 * proposal.rate:.6g} % of the 1,000,000 nodes report" in words
    assert f"is {proposal.error:.4g}, at most 0.01" in words
    assert "The next best, test_hashed, costs 1." in words
    p, q = proposal.oracle.support_probabilities
    perturbed = (0.01 * p * (1 - p) + 0.99 * q * (1 - q)) / (p - q) ** 2
    chosen = 0.01 * 0.99 * (1 - proposal.rate)
    assert f"{chosen / (chosen + perturbed):.1%} comes from who takes part" in words
    tight = plan(
        epsilon=1.2, domain_size=100, nodes=10**6, target="max_error", oracles=several
    ).explain()
    assert "all 1,000,000 nodes report" in tight
    assert "over all answers, with probability 0.95" in tight
    assert "Nothing smaller is reached" in tight
    assert "times the error" in tight


def test_the_trade_off_is_drawn(several: list[Any]) -> None:
    proposal = plan(epsilon=1.2, domain_size=100, nodes=10**6, value=0.01, oracles=several)
    tradeoff = proposal.tradeoff()
    assert tradeoff.rates[-1] == 1.0
    assert tradeoff.rates[0] < proposal.rate
    assert [curve.name for curve in tradeoff.curves] == [
        "test_plain", "test_hashed", "direct_encoding",
    ]  # fmt: skip
    for curve in tradeoff.curves:
        assert list(curve.errors) == sorted(curve.errors, reverse=True)
        assert list(curve.costs) == pytest.approx([10**6 * rate for rate in tradeoff.rates])
    axes: Any = tradeoff.plot()
    axes.figure.draw_without_rendering()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlabel() == "participation rate"
    assert "root mean squared error" in axes.get_ylabel()
    lines = [line for line in axes.lines if len(line.get_xdata()) > 5]
    for line, curve in zip(lines, tradeoff.curves, strict=True):
        assert tuple(line.get_ydata()) == curve.errors
    few = proposal.tradeoff([1.0, 0.01])
    assert few.rates == (0.01, 1.0)
    rows = few.to_records()
    assert [row["oracle"] for row in rows[::2]] == ["test_plain", "test_hashed", "direct_encoding"]
    assert [row["rate"] for row in rows[:2]] == [0.01, 1.0]
    assert rows[1]["error"] == few.curves[0].errors[1]
    for wrong in ([], [0.0], [2.0]):
        with pytest.raises(InvalidValueError, match="rates must"):
            proposal.tradeoff(wrong)


@pytest.mark.parametrize("name", sorted(registered()))
@pytest.mark.parametrize("target", ["rmse", "max_error", "total_variation"])
@pytest.mark.parametrize("frequencies", [[0.7, 0.3], SKEWED])
def test_promises_hold_node_by_node_for_every_oracle(
    target: str, name: str, frequencies: list[float]
) -> None:
    """Measured within 5 %, and 4.9 standard errors for the simulation (alpha = 1e-6)."""
    # Enough for the largest error of two answers not to be taken for that of independent ones.
    runs = 2000 if target == "max_error" and len(frequencies) == 2 else 500
    nodes, size = 4000, len(frequencies)
    proposal = plan(
        epsilon=1.5, domain_size=size, nodes=nodes, target=target, frequencies=frequencies,
        oracles=name, budget=1000,
    )  # fmt: skip
    values = np.repeat(np.arange(size), np.rint(np.array(frequencies) * nodes).astype(np.int64))
    truth = np.bincount(values, minlength=size) / nodes
    errors = np.array([
        np.abs(
            proposal.oracle.collect(values, participation=proposal.participation, seed=seed)
            .estimate()
            .frequencies
            - truth
        )
        for seed in range(runs)
    ])  # fmt: skip
    kinds = {
        "rmse": (errors**2).mean(axis=1),
        "total_variation": errors.sum(axis=1) / 2,
        "max_error": errors.max(axis=1),
    }
    measured, deviation = proposal._measured(kinds[target])
    slack = 0.0 if target == "rmse" else 0.05 * proposal.error
    assert abs(measured - proposal.error) < slack + 4.9 * deviation


@pytest.mark.parametrize("target", ["rmse", "max_error", "total_variation"])
def test_promises_count_the_error_of_shared_hash_functions(target: str) -> None:
    # So many nodes that the functions are nearly all the error; over 1,000 choices of them.
    frequencies, nodes, runs = [0.5, 0.2, 0.1, 0.1, 0.06, 0.04], 5 * 10**7, 1000

    def maker(seed: int) -> Any:
        return lambda epsilon, domain: with_functions(
            tn.HadamardCountMeanSketch(epsilon, domain, hashes=64, width=8), seed
        )

    proposal = plan(
        epsilon=2.0, domain_size=6, nodes=nodes, target=target, frequencies=frequencies,
        oracles=maker(0),
    )  # fmt: skip
    counts = np.rint(np.array(frequencies) * nodes).astype(np.int64)
    errors = np.array([
        np.abs(
            maker(seed)(2.0, 6).simulate(counts, seed=seed).estimate().frequencies - frequencies
        )
        for seed in range(runs)
    ])  # fmt: skip
    kinds = {
        "rmse": (errors**2).mean(axis=1),
        "total_variation": errors.sum(axis=1) / 2,
        "max_error": errors.max(axis=1),
    }
    measured, deviation = proposal._measured(kinds[target])
    slack = 0.0 if target == "rmse" else 0.1 * proposal.error
    assert abs(measured - proposal.error) < slack + 4.9 * deviation
    alone = plan(
        epsilon=2.0, domain_size=6, nodes=nodes, target=target, frequencies=frequencies,
        oracles="hadamard_response",
    )  # fmt: skip
    assert proposal.error > 10 * alone.error


def test_plans_are_equal_by_what_they_say() -> None:
    def planned(epsilon: float, shares: Any) -> PlanProposal:
        setting: dict[str, Any] = {"nodes": 10**6, "target": "rmse", "value": 0.005}
        return plan(epsilon=epsilon, domain_size=3, frequencies=shares, **setting)

    shares = [0.5, 0.3, 0.2]
    one, same = planned(1.0, shares), planned(1.0, shares)
    assert one == same
    assert one.tradeoff() == same.tradeoff()
    assert len({one, same}) == 1
    others = [planned(2.0, shares), planned(1.0, None), planned(1.0, [0.4, 0.4, 0.2])]
    assert not any(one == other or one.tradeoff() == other.tradeoff() for other in others)
    assert len({one, *others}) == 4


def test_a_plan_at_the_largest_epsilon_warns_of_nothing() -> None:
    # Few nodes of sure answers: some errors are certain, whose probability to be small is zero.
    proposal = tn.plan(epsilon=40.0, domain_size=2, nodes=1000, target="max_error", value=0.01)
    assert proposal.participation.rate == pytest.approx(0.905873, abs=1e-5)
