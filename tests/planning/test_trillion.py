"""Plans, simulations, estimates and intervals of 10^12 nodes, beside exact computations."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import turnout as tn
from turnout.collecting.intervals import mean_inverse
from turnout.planning import PlanProposal
from turnout.planning.planner import plan

NODES = 10**12
COUNTS = [700 * 10**9, 299 * 10**9, 10**9 - 1000, 1000, 0]
RATE = 0.001953125  # 2^-9: a float that is exactly what it says


def exact_mean_inverse(nodes: int, rate: float) -> Any:
    """E[1/S | S >= 1] of a binomial S, as an integral over its generating function.

    E[t^S] is (1 - rate + rate t)^n, and the integral of t^(s - 1) over [0, 1] is 1/s; with
    t = 1 - u / (n rate) it is 1 / (n rate) times that of (1 - u/n)^n / (1 - u / (n rate)).
    """
    with mpmath.workdps(50):
        mean = mpmath.mpf(nodes) * mpmath.mpf(rate)

        def integrand(u: Any) -> Any:
            return mpmath.exp(nodes * mpmath.log1p(-u / nodes)) / (1 - u / mean)

        return mpmath.quad(integrand, [0, 1, 4, 10, 25, 60, 140]) / mean


@pytest.mark.parametrize("rate", [2.0**-25, 1e-5, RATE, 0.5, 0.999])
def test_the_mean_of_an_inverse_number_of_reports(rate: float) -> None:
    assert mean_inverse(NODES, rate) == pytest.approx(
        float(exact_mean_inverse(NODES, rate)), rel=1e-12
    )


def exact_rmse(proposal: PlanProposal, rate: float) -> float:
    """The root mean squared error of Hajek's estimates of equal frequencies."""
    oracle: Any = proposal.oracle
    words = oracle._core.words
    size = oracle.domain.size
    p, q = (Fraction(word, 2**64) for word in words)
    if oracle.name == "direct_encoding":
        total = words[0] + (size - 1) * words[1]
        p, q = (Fraction(word, total) for word in words)
    f = Fraction(1, size)
    perturbed = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2
    with mpmath.workdps(50):
        inverse = exact_mean_inverse(NODES, rate)
        sampled = (NODES * inverse - 1) / (NODES - 1)
        chosen = f * (1 - f)
        variance = inverse * perturbed.numerator / perturbed.denominator
        variance += sampled * chosen.numerator / chosen.denominator
        return float(mpmath.sqrt(variance))


@pytest.mark.parametrize("oracle", ["direct_encoding", "optimized_unary_encoding"])
@pytest.mark.parametrize("value", [1e-4, 1e-5])
def test_the_promise_is_exact_and_the_rate_no_larger_than_needed(oracle: str, value: float) -> None:
    proposal = plan(epsilon=2.0, domain_size=50, nodes=NODES, value=value, oracles=oracle)
    assert proposal.rate < 1.0
    assert proposal.error == pytest.approx(exact_rmse(proposal, proposal.rate), rel=1e-11)
    assert exact_rmse(proposal, proposal.rate) <= value
    assert exact_rmse(proposal, proposal.rate * (1 - 1e-5)) > value


@pytest.mark.parametrize("cost_per_bit", [0.0, 0.001, 0.1, 1 / 3])
@pytest.mark.parametrize("budget", [5e9, 1e9 / 7, 123456789.0])
def test_a_budget_is_never_exceeded(cost_per_bit: float, budget: float) -> None:
    proposal = plan(
        epsilon=1.0, domain_size=50, nodes=NODES, budget=budget, cost_per_bit=cost_per_bit
    )
    costs = [each.cost for each in proposal.candidates if each.remark is None]
    assert budget * (1 - 1e-12) <= proposal.cost <= budget
    assert max(costs) <= budget


def test_the_command_line_plans_for_a_trillion(turnout_plan: Callable[..., Any]) -> None:
    found = turnout_plan("-e", 2, "-k", 50, "-n", NODES, "-v", 1e-5, "--oracle", "direct-encoding")
    expected = plan(epsilon=2.0, domain_size=50, nodes=NODES, value=1e-5, oracles="direct_encoding")
    assert found["nodes"] == NODES
    assert found["participation"] == expected.rate
    assert found["expected_reports"] == NODES * expected.rate
    assert found["error"] == expected.error


@pytest.fixture
def turnout_plan() -> Callable[..., Any]:
    testing = pytest.importorskip("typer.testing")
    from turnout.cli.app import app

    def run(*arguments: object) -> Any:
        result = testing.CliRunner().invoke(app, ["plan", "--json", *map(str, arguments)])
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


@pytest.mark.parametrize("oracle", [tn.DirectEncoding, tn.OptimizedUnaryEncoding])
def test_simulations_of_a_trillion_have_the_exact_law(oracle: Any, statistical: ModuleType) -> None:
    made = oracle(1.0, 5)
    p, q = made.support_probabilities
    runs = [
        made.simulate(COUNTS, participation=tn.Bernoulli(RATE), seed=seed) for seed in range(600)
    ]
    assert all(run.nodes == NODES for run in runs)
    own, other = RATE * p, RATE * q
    counts = np.array(COUNTS, np.float64)
    mean = counts * own + (NODES - counts) * other
    variance = counts * own * (1 - own) + (NODES - counts) * other * (1 - other)
    support = np.array([run.support for run in runs], np.float64)
    received = np.array([[run.received] for run in runs], np.float64)
    statistical.check_mean(support - mean, np.zeros(5))
    statistical.check_variance(support - mean, variance)
    statistical.check_mean(received - NODES * RATE, np.zeros(1))
    statistical.check_variance(received - NODES * RATE, [NODES * RATE * (1 - RATE)])


def test_estimates_and_intervals_of_a_trillion_are_exact() -> None:
    oracle = tn.OptimizedUnaryEncoding(1.0, 5)
    tally = oracle.simulate(COUNTS, participation=tn.Bernoulli(RATE), seed=4)
    estimate = tally.estimate()
    interval = estimate.interval(0.95, method="score", simultaneous="bonferroni")
    p, q = map(mpmath.mpf, oracle.support_probabilities)
    reports, nodes = mpmath.mpf(tally.received), mpmath.mpf(NODES)
    with mpmath.workdps(60):
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.mpf("0.05") / 5)
        for code, support in enumerate(tally.support.tolist()):
            share = (support / reports - q) / (p - q)

            def variance(f: Any) -> Any:
                # Given their number, who report is a simple random sample of the nodes.
                perturbed = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2 / reports
                return perturbed + f * (1 - f) / reports * (nodes - reports) / (nodes - 1)

            error = mpmath.sqrt(variance(min(max(share, mpmath.mpf(0)), mpmath.mpf(1))))
            assert estimate.frequencies[code] == pytest.approx(float(share), rel=1e-9, abs=1e-15)
            assert estimate.standard_errors[code] == pytest.approx(float(error), rel=1e-9)
            for limit, side in ((interval.low[code], -1), (interval.high[code], 1)):
                start = share + side * z * error
                root = mpmath.findroot(
                    lambda f, share=share: (share - f) ** 2 - z**2 * variance(f), start
                )
                # The limits are some 10^-5 from the estimate: compared by their distance.
                assert limit - estimate.frequencies[code] == pytest.approx(
                    float(root - share), rel=1e-8
                )
